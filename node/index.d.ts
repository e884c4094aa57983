/**
 * A string is its UTF-8, a number its 8 bytes in little-endian order. Numbers go from
 * -2^63 to 2^64 - 1, beyond 2^53 as bigints; a negative one is its two's complement, so
 * -1 and 2n ** 64n - 1n are one key.
 */
export type Key = string | Uint8Array | number | bigint;

export interface Options {
  /** One of kinds(); default the first. */
  kind?: string;
  /** Size, instead of the rate. */
  bits?: number;
  /** Bits per key; default the best number. */
  probes?: number;
  /** 0: fixed size; 1.25 to 16: a full filter gets larger, and n may be left out. */
  growth?: number;
  /** One of hashes(); default: the hash of the kind. */
  hash?: string;
  /** Filters to be merged must share it. Default 0, and random with growth. */
  seed?: number | bigint;
}

export interface Info {
  kind: string;
  hash: string;
  seed: bigint;
  /** Keys that it has, and that it holds before the rate exceeds ratePromised. */
  keys: number;
  capacity: number;
  bits: number;
  bytes: number;
  parts: number;
  probes: number;
  growth: number;
  strict: boolean;
  ratePromised: number;
  /** At the present fill. */
  rate: number;
  fill: number;
  /** Number of keys, estimated from the fill. */
  distinct: number;
  /** Keys on its allow list: known not to be in it. */
  allowed: number;
}

export interface Plan {
  kind: string;
  keys: number;
  bytes: number;
  bits: number;
  probes: number;
  rate: number;
  fpr: number;
}

/** A failure of the library; its text says what was wanted. */
export class CalyxError extends Error {
  status: number;
}

export class Filter {
  /** For n keys, that lets the share p of other keys pass; default 0.01. */
  constructor(n?: number, p?: number, options?: Options);
  /** From the bytes of a file. */
  static fromBytes(bytes: Uint8Array): Filter;
  /** True if the key was not there: true is certain. */
  add(key: Key): boolean;
  /** Was this key added? false is certain. */
  has(key: Key): boolean;
  /** Adds many keys; returns how many were not there. */
  addMany(keys: Iterable<Key>): number;
  /** 1 or 0 for each key. */
  hasMany(keys: Iterable<Key>): Uint8Array;
  /** Only kinds that can; never a key that was not added. */
  remove(key: Key): boolean;
  /** How often it was added, at most; kinds that count do so to 15, others to 1. */
  count(key: Key): number;
  /** The number of keys. */
  get size(): number;
  /** All that is known of it; reads all bits. */
  get info(): Info;
  /** Adds all keys of a filter of the same kind, hash, seed and size. */
  merge(other: Filter): void;
  /** Removes all keys. */
  clear(): void;
  /** The bytes of a file. */
  toBytes(): Uint8Array;
  /** Frees the memory at once; the garbage collector does it late. */
  free(): void;
}

/** Collects keys whose number need not be known, then makes a filter of any kind. */
export class Builder {
  constructor(p?: number, options?: { kind?: string });
  add(key: Key): void;
  addMany(keys: Iterable<Key>): void;
  /** A filter of the keys so far; more may follow. */
  finish(): Filter;
  free(): void;
}

/** A request failed, or its answer is not what was requested; the text says which. */
export class RemoteError extends Error {
  what: "reach" | "ranges" | "status" | "range" | "version" | "changed" | "size" | "slots";
}

/**
 * A filter in a file on a web server that sends byte ranges: only its header and
 * what lookups need are read. A file that changes meanwhile is an error.
 */
export class RemoteFilter {
  static open(url: string | URL): Promise<RemoteFilter>;
  has(key: Key): Promise<boolean>;
  /** 1 or 0 for each key. */
  hasMany(keys: Iterable<Key>): Promise<Uint8Array>;
  /** What the header says; what needs all bits is not there. */
  get info(): Omit<Info, "rate" | "fill" | "distinct"> & { comment: string };
  /** What was read so far. */
  get traffic(): { requests: number; bytes: number };
  free(): void;
}

/** A client of node-redis or ioredis, or one of theirs for a cluster. */
export type RedisClient =
  | { sendCommand(...args: any[]): Promise<any> }
  | { callBuffer(command: string, ...args: any[]): Promise<any> };

/**
 * A filter that `calyx push --plain` stored as strings in a Redis or Valkey server,
 * which needs no module. A string that the server has evicted is an error, never a "no".
 */
export class PlainFilter {
  static open(client: RedisClient, name: string): Promise<PlainFilter>;
  has(key: Key): Promise<boolean>;
  /** 1 or 0 for each key, all of one filter, whatever is pushed meanwhile. */
  hasMany(keys: Iterable<Key>): Promise<Uint8Array>;
  /** True if the key was not there: true is certain. */
  add(key: Key): Promise<boolean>;
  /** Adds many keys; returns how many were not there. */
  addMany(keys: Iterable<Key>): Promise<number>;
  free(): void;
}

/** What a filter would take. */
export function plan(n: number, p?: number, options?: { kind?: string }): Plan;
export function kinds(): string[];
export function hashes(): string[];
/** What a kind can: "add", "remove", "merge" and so on. */
export function abilities(kind?: string): string[];
export function version(): string;
