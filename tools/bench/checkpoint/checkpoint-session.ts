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

const MIB = 1 << 20;
let folder = "";
let tensors: Record<string, Tensor> = {};
const at = (name: string) => join(folder, name);
const step = { step: 1 };

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

let copies: Uint8Array[] = [];
let held: Uint8Array[] | undefined;
let lastSave: Promise<unknown> = Promise.resolve();
let few: Record<string, Tensor> | undefined;

/** A hundred thousand tensors of 128 bytes. */
function small(): Record<string, Tensor> {
  few ??= Object.fromEntries(
    Array.from({ length: 100_000 }, (_, i) => [
      `layer.${i}.weight`,
      tensor(new Float32Array(32).fill(i), { shape: [8, 4] }),
    ]),
  );
  return few;
}

const WORKS: Readonly<Record<string, () => Promise<unknown>>> = {
  "raw write + fsync": rawWrite,
  "raw read": rawRead,
  save: () => saveCheckpoint(at("one"), { ...step, tensors }),
  "save, 4 ranks": () => saveCheckpoint(at("four"), { ...step, tensors }, { world: 4 }),
  "load as Tensors": () => loadCheckpoint(at("one")),
  "load as Tensors, reused memory": () => loadCheckpoint(at("one")),
  "load into Tensors": () => loadCheckpoint(at("one"), { into: tensors }).then(() => {}),
  "load as Tensors, no checksums": () => loadCheckpoint(at("one"), { verify: false }),
  "load, 4 ranks": () => loadCheckpoint(at("four")),
  verify: () => verifyCheckpoint(at("one")),
  merge: () => mergeCheckpoint(at("four"), at("merged.safetensors"), { overwrite: true }),
  "reshard 4 to 2": () => reshardCheckpoint(at("four"), at("two"), { ranks: 2 }),
  "memory copy, fresh": async () => copies.map((bytes) => bytes.slice()),
  "memory copy, warm": async () => {
    held ??= copies.map((bytes) => bytes.slice());
    for (const [i, bytes] of copies.entries()) held[i]!.set(bytes);
  },
  "async save, until it returns": async () => {
    const saving = saveCheckpoint(at("async"), { ...step, tensors }, { async: true });
    lastSave = saving;
    await saving.copied;
  },
  "100,000 tensors, 4 ranks: save": () => saveCheckpoint(at("small"), { ...step, tensors: small() }, { world: 4 }),
  "100,000 tensors, 4 ranks: load": () => loadCheckpoint(at("small")),
  "100,000 tensors: reshard 4 to 3": () => reshardCheckpoint(at("small"), at("small3"), { ranks: 3 }),
};

/** What a work writes; removed before it runs. */
const WRITES: Readonly<Record<string, string>> = {
  "raw write + fsync": "raw",
  save: "one",
  "save, 4 ranks": "four",
  merge: "merged.safetensors",
  "reshard 4 to 2": "two",
  "async save, until it returns": "async",
  "100,000 tensors, 4 ranks: save": "small",
  "100,000 tensors: reshard 4 to 3": "small3",
};

/** What a work reads; in the page cache when it runs. */
const READS: Readonly<Record<string, string>> = {
  "raw read": "raw",
  "load as Tensors": "one",
  "load as Tensors, reused memory": "one",
  "load into Tensors": "one",
  "load as Tensors, no checksums": "one",
  "load, 4 ranks": "four",
  verify: "one",
  merge: "four",
  "reshard 4 to 2": "four",
  "100,000 tensors, 4 ranks: load": "small",
  "100,000 tensors: reshard 4 to 3": "small",
};

const piece = new Uint8Array(MIB);

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

interface Request {
  readonly command: "open" | "check" | "prepare" | "run";
  readonly device?: string;
  readonly folder?: string;
  readonly source?: string;
  readonly path?: string;
  readonly name?: string;
}

async function answer(request: Request): Promise<object> {
  if (request.command === "open") {
    const { name: device } = await init(request.device);
    folder = request.folder!;
    mkdirSync(folder, { recursive: true });
    if (request.source === undefined) return { device };
    const { tensors: made } = await loadCheckpoint(request.source);
    tensors = made;
    copies = Object.values(tensors).map((one) => one.bytesSync());
    globalThis.gc?.();
    return { device };
  }
  if (request.command === "check") {
    const { tensors: read } = await loadCheckpoint(at(request.path!));
    const isEqual = digest(read) === digest(tensors);
    for (const one of Object.values(read)) one.dispose();
    return { isEqual };
  }
  if (request.command === "prepare") {
    if (request.name!.startsWith("100,000")) small();
    if (WRITES[request.name!]) rmSync(at(WRITES[request.name!]!), { recursive: true, force: true });
    if (READS[request.name!]) readThrough(at(READS[request.name!]!));
    globalThis.gc?.();
    await setTimeout(100); // a thread of the engine gives memory back
    return {};
  }
  const work = WORKS[request.name!]!;
  const quiet = status("VmRSS");
  writeFileSync("/proc/self/clear_refs", "5");
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  const result = await work();
  const milliseconds = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  const peak = status("VmHWM");
  await lastSave;
  for (const one of loadedBy(result)) one.dispose();
  return { milliseconds, cpu: (user + system) / 1000, peak: peak - quiet, whole: peak };
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await answer(JSON.parse(line)).catch((error: Error) => ({ error: error.stack }))));
}
