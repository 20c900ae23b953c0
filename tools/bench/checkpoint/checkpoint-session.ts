/** Our side of the checkpoint benchmark, a program of its own: one line of JSON each way per request. */
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { crc32 } from "node:zlib";
import "@opt/kernels-cpu";
import { loadCheckpoint, mergeCheckpoint, reshardCheckpoint, saveCheckpoint, verifyCheckpoint } from "@opt/checkpoint";
import { init, type Tensor, tensor } from "@opt/core";

let folder = "";
let tensors: Record<string, Tensor> = {};
let copies: Uint8Array[] = [];
let held: Uint8Array[] | undefined;
let lastSave: Promise<unknown> = Promise.resolve();
let few: Record<string, Tensor> | undefined;
const at = (name: string) => join(folder, name);

/** Every element of every tensor, in the order of their names. */
function digest(loaded: Readonly<Record<string, Tensor>>): number {
  let crc = 0;
  for (const name of Object.keys(loaded).sort()) crc = crc32(loaded[name]!.bytesSync(), crc);
  return crc;
}

async function rawWrite(): Promise<void> {
  const file = await open(at("raw"), "w");
  for (const bytes of copies) await file.write(bytes);
  await file.sync();
  await file.close();
}

async function rawRead(): Promise<void> {
  const file = await open(at("raw"), "r");
  const length = copies[0]!.length;
  for (let i = 0; i < copies.length; i++) await file.read(new Uint8Array(length), 0, length, i * length);
  await file.close();
}

/** A hundred thousand tensors of 128 bytes. */
function small(): Record<string, Tensor> {
  const one = (i: number) => tensor(new Float32Array(32).fill(i), { shape: [8, 4] });
  few ??= Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`layer.${i}.weight`, one(i)]));
  return few;
}

interface Work {
  /** In the page cache when it runs. */
  readonly reads?: string;
  /** Removed before it runs. */
  readonly writes?: string;
  run(): Promise<unknown>;
}

const save = (writes: string, world?: number): Work => ({
  writes,
  run: () => saveCheckpoint(at(writes), { step: 1, tensors }, { world }),
});
const load = (reads: string, options?: object): Work => ({ reads, run: () => loadCheckpoint(at(reads), options) });

const WORKS: Readonly<Record<string, Work>> = {
  "raw write + fsync": { writes: "raw", run: rawWrite },
  "raw read": { reads: "raw", run: rawRead },
  save: save("one"),
  "save, 4 ranks": save("four", 4),
  "load as Tensors": load("one"),
  "load as Tensors, reused memory": load("one"),
  "load into Tensors": { reads: "one", run: () => loadCheckpoint(at("one"), { into: tensors }).then(() => {}) },
  "load as Tensors, no checksums": load("one", { verify: false }),
  "load, 4 ranks": load("four"),
  verify: { reads: "one", run: () => verifyCheckpoint(at("one")) },
  merge: {
    ...{ reads: "four", writes: "merged.safetensors" },
    run: () => mergeCheckpoint(at("four"), at("merged.safetensors"), { overwrite: true }),
  },
  "reshard 4 to 2": {
    ...{ reads: "four", writes: "two" },
    run: () => reshardCheckpoint(at("four"), at("two"), { ranks: 2 }),
  },
  "memory copy, fresh": { run: async () => copies.map((bytes) => bytes.slice()) },
  "memory copy, warm": {
    async run() {
      held ??= copies.map((bytes) => bytes.slice());
      for (const [i, bytes] of copies.entries()) held[i]!.set(bytes);
    },
  },
  "async save, until it returns": {
    writes: "async",
    async run() {
      const saving = saveCheckpoint(at("async"), { step: 1, tensors }, { async: true });
      lastSave = saving;
      await saving.copied;
    },
  },
  "100,000 tensors, 4 ranks: save": {
    writes: "small",
    run: () => saveCheckpoint(at("small"), { step: 1, tensors: small() }, { world: 4 }),
  },
  "100,000 tensors, 4 ranks: load": load("small"),
  "100,000 tensors: reshard 4 to 3": {
    ...{ reads: "small", writes: "small3" },
    run: () => reshardCheckpoint(at("small"), at("small3"), { ranks: 3 }),
  },
};

const piece = new Uint8Array(1 << 20);

/** Reads a file, or every file of a folder. */
function readThrough(path: string): void {
  if (statSync(path).isDirectory()) {
    for (const name of readdirSync(path)) readThrough(join(path, name));
    return;
  }
  const file = openSync(path, "r");
  while (readSync(file, piece) > 0);
  closeSync(file);
}

/** New tensors that a work has made. */
function loadedBy(result: unknown): Tensor[] {
  const made = (result as { tensors?: unknown } | undefined)?.tensors;
  return typeof made === "object" ? Object.values(made as Record<string, Tensor>) : [];
}

const status = (field: string) =>
  Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync("/proc/self/status", "utf8"))![1]) / 1024;

type Request = Readonly<Record<"folder" | "name", string> & { device?: string; source?: string }>;

const COMMANDS: Readonly<Record<string, (request: Request) => Promise<object>>> = {
  async open({ folder: chosen, device: wanted, source }) {
    const { name: device } = await init(wanted);
    folder = chosen;
    mkdirSync(folder, { recursive: true });
    if (source === undefined) return { device };
    ({ tensors } = await loadCheckpoint(source));
    copies = Object.values(tensors).map((one) => one.bytesSync());
    globalThis.gc?.();
    return { device };
  },
  async check({ name }) {
    const { tensors: read } = await loadCheckpoint(at(name));
    const isEqual = digest(read) === digest(tensors);
    for (const one of Object.values(read)) one.dispose();
    return { isEqual };
  },
  async prepare({ name }) {
    const { reads, writes } = WORKS[name]!;
    if (name.startsWith("100,000")) small();
    if (writes !== undefined) rmSync(at(writes), { recursive: true, force: true });
    if (reads !== undefined) readThrough(at(reads));
    globalThis.gc?.();
    await setTimeout(100); // a thread of the engine gives memory back
    return {};
  },
  async run({ name }) {
    const quiet = status("VmRSS");
    writeFileSync("/proc/self/clear_refs", "5");
    const [start, before] = [performance.now(), process.cpuUsage()];
    const result = await WORKS[name]!.run();
    const milliseconds = performance.now() - start;
    const { user, system } = process.cpuUsage(before);
    const peak = status("VmHWM");
    await lastSave;
    for (const one of loadedBy(result)) one.dispose();
    return { milliseconds, cpu: (user + system) / 1000, peak: peak - quiet };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const answer = COMMANDS[request.command]!(request).catch((error: Error) => ({ error: error.stack }));
  console.log(JSON.stringify(await answer));
}
