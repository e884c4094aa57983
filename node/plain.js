// A filter as plain strings in a Redis or Valkey server that loads no module, by a client
// that the caller has: of node-redis or ioredis. The library says which 64 bytes answer a
// lookup and which bits a key sets; GETRANGE reads them, and BITFIELD sets them.
//
// Each string begins with the generation of the filter. It is read after all lines, and
// an answer counts only if it was there: a string that the server has evicted, and that
// an addition made anew, is an error, never a "no".

const GUARD = 8; // bytes of the generation, before the bytes of the file
const LINE = 64;
const MOST = 1000; // keys that are sent at once
const TRIES = 100;

// Sends a command and returns its reply, with bytes as they are. Commands that are sent at
// once go to a node in their order.
function sender(client) {
  if (client.callBuffer) return (words) => client.callBuffer(...words); // ioredis
  if (!client.sendCommand) throw new TypeError("expected a client of node-redis or ioredis");
  const options = { returnBuffers: true, typeMapping: { 36: Buffer } }; // versions 4 and 5
  return isCluster(client) ? (words) => client.sendCommand(words[1], false, words, options)
    : (words) => client.sendCommand(words, options);
}

// A cluster may send a command again, after later ones.
const isCluster = (client) => typeof client.nodeClient === "function" || client.isCluster === true;

const text = (value) => value == null ? "" : String(value);

const unused = new FinalizationRegistry((layout) => layout.free());

// The layout of one generation, and where its bytes are. Calls that wait may use it when
// another one has taken its place.
class Held {
  constructor(name, fields) {
    const [version, generation, bytes, piece] = fields.map(text);
    if (!generation) throw new Error("there is no filter under this key");
    if (!version)
      throw new Error("the filter under this key is not complete: it is being pushed, or a part " +
        "of it was lost; push it again");
    if (version !== "1") throw new Error("the filter has a layout that this version of calyx does not know");
    Object.assign(this, { id: generation, bytes: Number(bytes), piece: Number(piece), layout: null,
      prefix: `${name}:${generation}:`, announced: false });
    if (generation.length !== GUARD || !(Number.isSafeInteger(this.bytes) && this.bytes > 0) ||
        !(this.piece > 0 && this.piece % LINE === 0))
      throw new Error("the hash under this key does not describe a plain filter");
  }

  use(layout) {
    this.layout = layout;
    unused.register(this, layout, this);
  }

  free() {
    unused.unregister(this);
    this.layout?.free();
    this.layout = null;
  }

  // The string that has a byte of the file, and where.
  place(at) {
    return { piece: Math.floor(at / this.piece), offset: GUARD + at % this.piece };
  }
}

export class Plain {
  #calyx;
  #bytesOf;
  #send;
  #ordered;
  #name;

  constructor(calyx, bytesOf, client, name) {
    this.#calyx = calyx;
    this.#bytesOf = bytesOf;
    this.#send = sender(client);
    this.#ordered = !isCluster(client);
    this.#name = String(name);
    this.held = null;
  }

  // ---- Opening ----

  // What is there now. A filter that has lost strings is an error.
  async load(lost) {
    for (let i = 0; i < TRIES; i++) {
      const held = new Held(this.#name,
        await this.#command("HMGET", "calyx", "generation", "bytes", "piece"));
      if (held.id === lost)
        throw new Error("pieces of the filter are missing: the server evicted or lost them; push it again");
      if (await this.#readLayout(held)) {
        this.held = held;
        return this;
      }
      held.free();
      lost = held.id;
    }
    throw new Error("the filter is replaced faster than it can be read");
  }

  async #readLayout(held) {
    const first = await this.#read(held, 0, Math.min(held.bytes, this.#calyx.headerMost));
    if (!first) return false;
    held.use(this.#calyx.layout(first));
    const { sections } = held.layout, { asks, secret, kind } = held.layout.describe();
    if (sections.at(-1).at !== held.bytes) throw new Error("damaged: the hash and the header say other sizes");
    if (!asks)
      throw new Error(secret ? "it was made with a secret key"
        : `a lookup in a ${kind} filter learns what to read only while it reads; pull it, and query the file`);
    const list = sections.find(({ name }) => name === "allow");
    if (!list) return true;
    const bytes = await this.#read(held, list.at, list.bytes);
    if (bytes && held.layout.checkKept(list, bytes) !== "good")
      throw new Error("damaged: the allow list does not match its checksum");
    return bytes !== null;
  }

  // Bytes of the file; null if they are gone.
  async #read(held, at, size) {
    const commands = [];
    for (const end = at + size; at < end; ) {
      const { piece, offset } = held.place(at), some = Math.min(end - at, held.piece - at % held.piece);
      commands.push({ piece, words: ["GETRANGE", offset, offset + some - 1] });
      at += some;
    }
    const { replies, lost } = await this.#run(held, commands), bytes = Buffer.concat(replies);
    return lost.length || bytes.length !== size ? null : bytes;
  }

  // ---- Commands ----

  #command(command, ...words) {
    return this.#send([command, this.#name, ...words.map(String)]);
  }

  #about(held, { piece, words: [command, ...words] }) {
    return this.#send([command, held.prefix + piece, ...words.map(String)]);
  }

  // Replies to commands about strings, and the strings that lack their generation.
  async #run(held, commands) {
    const pieces = [...new Set(commands.map(({ piece }) => piece))];
    const sent = commands.map((command) => this.#about(held, command));
    if (!this.#ordered) await Promise.all(sent);
    const guards = pieces.map((piece) => this.#about(held, { piece, words: ["GETRANGE", 0, GUARD - 1] }));
    const replies = await Promise.all([...sent, ...guards]);
    const lost = pieces.filter((_, i) => text(replies[sent.length + i]) !== held.id);
    return { replies: replies.slice(0, sent.length), lost };
  }

  get #held() {
    if (!this.held?.layout) throw new Error("the filter was freed");
    return this.held;
  }

  // Does it with the filter that is there, and again with the one that has replaced it
  // meanwhile.
  async #withHeld(call) {
    for (;;) {
      const held = this.#held, result = await call(held);
      if (result !== null) return result;
      if (this.held !== held) continue; // another call has loaded it
      await this.load(held.id);
    }
  }

  // ---- Lookups ----

  // 1 or 0 for each key by the first parts; null if the filter was replaced.
  async #look(held, hashes, parts) {
    const found = new Uint8Array(hashes.length);
    const part = new Uint32Array(hashes.length); // that has the next lines of a key
    let active = parts ? [...hashes.keys()] : [];
    while (active.length) {
      const places = active.map((i) => held.layout.lines(part[i], hashes[i]).map((at) => held.place(at)));
      const { replies, lost } = await this.#run(held, places.flat().map(({ piece, offset }) =>
        ({ piece, words: ["GETRANGE", offset, offset + LINE - 1] })));
      if (lost.length || replies.some((line) => line.length !== LINE)) return null;
      let from = 0;
      active = active.filter((i, n) => {
        const lines = replies.slice(from, from += places[n].length);
        const [has, next] = held.layout.answer(part[i], hashes[i], Buffer.concat(lines));
        found[i] ^= has;
        part[i] = next;
        return next > 0 && next < parts;
      });
    }
    return found;
  }

  async #has(held, keys) {
    const found = new Uint8Array(keys.length);
    for (let at = 0; at < keys.length; at += MOST) {
      const some = keys.slice(at, at + MOST);
      const answers = await this.#look(held, some.map((key) => held.layout.hash(key)), held.layout.parts.length);
      if (!answers) return null;
      found.set(answers.map((is, i) => is && !held.layout.allows(some[i])), at);
    }
    return found;
  }

  async hasMany(keys) {
    const all = Array.from(keys, this.#bytesOf);
    return this.#withHeld((held) => this.#has(held, all));
  }

  async has(key) {
    return (await this.hasMany([key]))[0] === 1;
  }

  // ---- Additions ----

  #expectAddable({ layout }) {
    const { kind, strict } = layout.describe();
    if (strict || layout.sections.some(({ name }) => name === "allow"))
      throw new Error("a filter with an allow list, or one that lets no more in than its capacity, " +
        "cannot be added to as plain strings");
    if (!layout.bits(0, 0n))
      throw new Error("as plain strings only a filter whose keys have all bits in one line can be " +
        `added to, such as kind line; this one is of kind ${kind}`);
  }

  // Which of these hashes set a bit, and the strings that were lost.
  async #set(held, hashes) {
    const newest = held.layout.parts.length - 1;
    const { replies, lost } = await this.#run(held, hashes.map((hash) => {
      const { piece, offset } = held.place(held.layout.lines(newest, hash)[0]);
      return { piece, words: ["BITFIELD", ...held.layout.bits(newest, hash).flatMap((bit) =>
        ["SET", "u1", 8 * offset + bit, 1])] };
    }));
    return { fresh: replies.map((old) => old.some((bit) => Number(bit) === 0)), lost };
  }

  async #isCurrent(held) {
    const generation = text(await this.#command("HGET", "generation"));
    if (generation) return generation === held.id;
    await this.#command("HDEL", `changed:${held.id}`); // all that is left of the hash
    throw new Error("there is no filter under this key any more");
  }

  // How many keys were not there; null if the filter was replaced, perhaps before they were
  // added.
  async #add(held, keys) {
    this.#expectAddable(held);
    const hashes = keys.map((key) => held.layout.hash(key));
    const older = await this.#look(held, hashes, held.layout.parts.length - 1);
    if (!older) return null;
    if (!held.announced) await this.#command("HSET", `changed:${held.id}`, 1);
    held.announced = true;
    const { fresh, lost } = await this.#set(held, hashes.filter((_, i) => !older[i]));
    for (const piece of lost) // what was added to it has made it anew, without the rest
      await this.#about(held, { piece, words: ["UNLINK"] });
    if (lost.length || !await this.#isCurrent(held)) return null;
    const count = fresh.filter(Boolean).length;
    if (count) await this.#command("HINCRBY", "items", count);
    return count;
  }

  async addMany(keys) {
    const all = Array.from(keys, this.#bytesOf);
    let fresh = 0;
    for (let at = 0; at < all.length; at += MOST)
      fresh += await this.#withHeld((held) => this.#add(held, all.slice(at, at + MOST)));
    return fresh;
  }

  async add(key) {
    return await this.addMany([key]) === 1;
  }

  free() {
    this.held.free();
  }
}
