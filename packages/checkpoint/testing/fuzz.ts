/** Feeds damaged checkpoints to the importers and watches what they do: an OptError, or an answer; within bounds of time and memory. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { OptError } from "@opt/core";
import { openForeign } from "../src/formats/registry";
import { underOurNames } from "../src/naming/names";
import { memoryFiles } from "./disks/memory-files";
import { flaxFile } from "./files/flax";
import { ggufOf } from "./files/gguf";
import * as made from "./files/made-files";
import { npyOf } from "./files/numpy";
import { ocdbtFolder, treeMetadata, writtenByOrbax, zarrValues } from "./files/orbax-files";
import { Call, Name, pickleOf, Tuple } from "./files/pickles";
import { universalFolder, zero2Folder, zero3Folder } from "./files/zero-files";
import { zipOf } from "./files/zips";
import { random } from "./fixtures";

export interface FuzzSeed {
  readonly name: string;
  /** What is opened: a file of `files`, or "" for the folder. */
  readonly path: string;
  readonly files: Readonly<Record<string, Uint8Array>>;
  /** Damages a part and wraps it anew, so that checksums do not stop the damage at the door. */
  readonly rewrap?: (random: Random) => Readonly<Record<string, Uint8Array>>;
}

export type Random = () => number;

/** Numbers in [0, 1) from a seed. */
function unitRandom(seed: number): Random {
  const next = random(seed);
  return () => next() / 2 ** 32;
}

const EDGES = [0, 1, 0x7f, 0x80, 0xff, 0x2e, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff];

/** A few of: flipped bits, bytes set, edge numbers written, a cut, a piece copied elsewhere, a piece left out. */
export function damaged(bytes: Uint8Array, random: Random): Uint8Array {
  const at = (length: number): number => Math.floor(random() * Math.max(1, length));
  let copy = Buffer.from(bytes);
  for (let n = 1 + at(4); n > 0 && copy.length > 0; n--) {
    const place = at(copy.length);
    const kind = at(8);
    if (kind < 2) copy[place]! ^= 1 << at(8);
    else if (kind < 4) copy[place] = at(256);
    else if (kind === 4 && place + 4 <= copy.length) copy.writeUInt32LE(EDGES[at(EDGES.length)]!, place);
    else if (kind === 5 && place + 8 <= copy.length)
      copy.writeBigUInt64LE(random() < 0.5 ? 2n ** 63n - 1n : 1n << 40n, place);
    else if (kind === 6) copy.copy(copy, place, at(copy.length), copy.length);
    else if (kind === 7) {
      const rest = copy.subarray(Math.min(copy.length, place + 1 + at(40)));
      copy = random() < 0.3 ? copy.subarray(0, place) : Buffer.concat([copy.subarray(0, place), rest]);
    }
  }
  return copy;
}

/** Runs damaged copies of the seeds until `enough`; throws at the first answer that is no OptError or is out of bounds. */
export async function fuzz(
  seeds: readonly FuzzSeed[],
  seed: number,
  enough: (count: number) => boolean,
): Promise<{ count: number; rejected: number; slowest: number }> {
  const unit = unitRandom(seed);
  let rejected = 0;
  let slowest = 0;
  let count = 0;
  for (; !enough(count); count++) {
    const origin = seeds[count % seeds.length]!;
    const files = damagedFiles(origin, unit);
    const begin = performance.now();
    try {
      await digest(files, origin.path);
    } catch (error) {
      if (!(error instanceof OptError) || error.code === "INTERNAL" || error.code === "IO") {
        throw new Error(`${origin.name}, run ${count} of seed ${seed}: ${error}`, { cause: error });
      }
      rejected++;
    }
    slowest = Math.max(slowest, performance.now() - begin);
  }
  return { count, rejected, slowest };
}

function damagedFiles(seed: FuzzSeed, random: Random): Readonly<Record<string, Uint8Array>> {
  if (seed.rewrap !== undefined && random() < 0.7) return seed.rewrap(random);
  const names = Object.keys(seed.files);
  const victim = seed.files[seed.path] === undefined ? names[Math.floor(random() * names.length)]! : seed.path;
  return { ...seed.files, [victim]: damaged(seed.files[victim]!, random) };
}

const MOST_READ = 256 * 1024;
/** Deflate may unpack to 1032 times its size, Zstandard to 32768 times, and quantized numbers are few bits; nothing else here is packed. */
const MOST_UNPACKED: Readonly<Record<string, number>> = {
  ...Object.fromEntries(["Keras", "NumPy", "GGUF", "Stable-Baselines3"].map((format) => [format, 1032])),
  Orbax: 32_768,
};

export async function digest(files: Readonly<Record<string, Uint8Array>>, path: string): Promise<void> {
  const fileSystem = memoryFiles(files);
  const total = Object.values(files).reduce((sum, bytes) => sum + bytes.length, 0);
  const source = await underOurNames(await openForeign(path === "" ? "/root" : `/root/${path}`, fileSystem));
  try {
    let budget = MOST_READ;
    for (const tensor of source.tensors.values()) {
      for (const box of tensor.boxes) {
        if (box.byteLength > total * (MOST_UNPACKED[source.format] ?? 8) + 64) {
          throw new RangeError(`${tensor.name} claims ${box.byteLength} bytes of ${total}`);
        }
        const length = Math.min(box.byteLength, budget);
        budget -= length;
        if (length > 0) await box.read(new Uint8Array(length), box.byteLength - length);
      }
    }
    JSON.stringify(source.values);
  } finally {
    await source.close();
  }
  if (fileSystem.longestRead() > Math.max(total, 1 << 20))
    throw new RangeError(`one read asked for ${fileSystem.longestRead()} bytes`);
}

/** One small checkpoint of each format. */
export async function madeSeeds(): Promise<FuzzSeed[]> {
  const { floats, torchTensorCall, numpyCall } = made;
  const object = {
    model: { w: torchTensorCall("0", [2, 2]) },
    optimizer: {
      state: new Map([[0, { step: 1, exp_avg: torchTensorCall("0", [2, 2], { stride: [1, 2] }) }]]),
      param_groups: [{ lr: 0.1, betas: new Tuple(0.9, 0.99), params: [0] }],
    },
    array: numpyCall([2], floats(1, 2)),
    size: new Call(new Name("torch", "Size"), [new Tuple(1, 2)]),
  };
  const storages = { 0: floats(1, 2, 3, 4) };
  const torchPickle = pickleOf(object, 2);
  const dcp = made.dcpFolder();
  const { keras, h5 } = await made.kerasFile();
  const packed = await made.kerasFile({ compressed: true });
  const paddle = {
    w: numpyCall([2, 2], floats(1, 2, 3, 4), { columnMajor: true }),
    s: { t: numpyCall([1], floats(1)) },
  };
  const strategy = made.strategyFile({ w: { devices: [2], map: [0, -1] } });
  const rank = made.mindsporeFile([["w", [1, 2], "Float32", floats(1, 2)]]);
  const npy = npyOf("'>f4'", "(2, 2)", floats(1, 2, 3, 4), { fortran: "True" });
  const files: [string, string, Record<string, Uint8Array>][] = [
    [
      "GGUF",
      "a.gguf",
      {
        "a.gguf": ggufOf(
          [
            { name: "q", dims: [256], type: 12, data: new Uint8Array(144).fill(1) },
            { name: "w", dims: [2], type: 0, data: floats(1, 2) },
          ],
          { words: ["a", "b"], n: 1 },
        ),
      },
    ],
    ["flax", "a.msgpack", { "a.msgpack": readFileSync(flaxFile("chunked")) }],
    ["flax values", "a.msgpack", { "a.msgpack": readFileSync(flaxFile("values")) }],
    ["npy", "a.npy", { "a.npy": npy }],
    ["npz, deflated", "a.npz", { "a.npz": zipOf({ "a.npy": npy, "b.npy": npy }, { deflated: {} }) }],
    ["torch zip", "a.pt", { "a.pt": made.torchZip(object, storages) }],
    ["TorchScript", "a.pt", { "a.pt": made.torchScript({ w: torchTensorCall("0", [2, 2]) }, storages) }],
    [
      "Trainer",
      "",
      {
        "pytorch_model.bin": made.torchZip(object.model, storages),
        "optimizer.pt": made.torchZip(object.optimizer, storages),
        "trainer_state.json": Buffer.from('{"global_step":3}'),
      },
    ],
    [
      "Stable-Baselines3",
      "a.zip",
      {
        "a.zip": zipOf(
          {
            data: Buffer.from('{"num_timesteps":3}'),
            "policy.pth": made.torchZip(object.model, storages),
            "policy.optimizer.pth": made.torchZip(object.optimizer, storages),
          },
          { deflated: {} },
        ),
      },
    ],
    ["torch legacy", "a.pt", { "a.pt": made.legacyTorch({ w: torchTensorCall("0", [2, 2]) }, storages) }],
    ["DCP", "", dcp],
    [
      "MindSpore",
      "a.ckpt",
      {
        "a.ckpt": made.mindsporeFile([
          ["w", [2], "Float32", floats(1, 2)],
          ["s", [1], "str", new Uint8Array(4)],
        ]),
      },
    ],
    ["MindSpore ranks", "", { "ckpt_strategy.ckpt": strategy, "rank_0/a-1_1.ckpt": rank, "rank_1/a-1_1.ckpt": rank }],
    ["Paddle", "a.pdparams", { "a.pdparams": pickleOf(paddle) }],
    ["Keras weights", "a.h5", { "a.h5": h5 }],
    ["Keras weights, packed", "a.h5", { "a.h5": packed.h5 }],
    ["TF.js", "model.json", made.tfjsFolder()],
    ["Orbax, zarr 2", "", writtenByOrbax("zarr2")],
    ["Orbax, zarr 3", "", writtenByOrbax("zarr3")],
    ["Orbax without OCDBT", "", { _METADATA: treeMetadata(), ...zarrValues() }],
    ["ZeRO 2", "", zero2Folder()],
    ["ZeRO 3", "", zero3Folder()],
    ["ZeRO Universal", "", universalFolder()],
    ["Megatron", "", { ...dcp, "common.pt": made.torchZip({ iteration: 1 }, {}) }],
    [
      "safetensors",
      "a.safetensors",
      { "a.safetensors": made.safetensorsFile([{ name: "w", shape: [2], data: floats(1, 2) }], { a: "b" }) },
    ],
    [
      "safetensors shards",
      "",
      {
        "a.safetensors": made.safetensorsFile([{ name: "w", shape: [2], data: floats(1, 2) }], {
          DCP_SHARDING_INFO: '{"w":{"saved_offsets":[0]}}',
        }),
      },
    ],
    [
      "safetensors index",
      "m.safetensors.index.json",
      {
        "m.safetensors.index.json": Buffer.from('{"weight_map":{"w":"a.safetensors"}}'),
        "a.safetensors": made.safetensorsFile([{ name: "w", shape: [2], data: floats(1, 2) }]),
      },
    ],
  ];
  return [
    ...files.map(([name, path, content]) => ({ name, path, files: content })),
    {
      name: "torch pickle",
      path: "a.pt",
      files: { "a.pt": made.torchZipOf(torchPickle, storages) },
      rewrap: (random) => ({ "a.pt": made.torchZipOf(damaged(torchPickle, random), storages) }),
    },
    {
      name: "OCDBT's nodes",
      path: "",
      files: ocdbtFolder(zarrValues()),
      rewrap: (random) => {
        const victim = ["manifest", "root", "leaf 0", "leaf 1"][Math.floor(random() * 4)];
        return ocdbtFolder(zarrValues(), { change: (node, body) => (node === victim ? damaged(body, random) : body) });
      },
    },
    {
      name: "Keras archive",
      path: "a.keras",
      files: { "a.keras": keras },
      rewrap: (random) => ({
        "a.keras": zipOf({ "config.json": Buffer.from("{}"), "model.weights.h5": damaged(h5, random) }),
      }),
    },
  ];
}

/** The checkpoints of other systems in a folder, a file or a folder of files each. */
export function seedsIn(folder: string): FuzzSeed[] {
  const filesUnder = (path: string): string[] =>
    readdirSync(path).flatMap((name) =>
      statSync(join(path, name)).isDirectory() ? filesUnder(join(path, name)) : [join(path, name)],
    );
  return readdirSync(folder)
    .filter((name) => statSync(join(folder, name)).isDirectory())
    .flatMap((name) => {
      const files = filesUnder(join(folder, name));
      const contents = Object.fromEntries(
        files.map((file) => [relative(join(folder, name), file), readFileSync(file)]),
      );
      if (/^torch-(dcp|hf)|tfjs/.test(name)) return [{ name, path: "", files: contents }];
      return Object.entries(contents).map(([file, bytes]) => ({
        name: `${name}/${file}`,
        path: file,
        files: { [file]: bytes },
      }));
    });
}
