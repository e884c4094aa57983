// Runs a program of WebAssembly: node wasi.mjs PROGRAM.
import { readFileSync } from 'node:fs';
import { WASI } from 'node:wasi';

const [, , program] = process.argv;
const wasi = new WASI({ version: 'preview1', args: [program] });
const { instance } = await WebAssembly.instantiate(readFileSync(program),
    { wasi_snapshot_preview1: wasi.wasiImport });
process.exitCode = wasi.start(instance);
