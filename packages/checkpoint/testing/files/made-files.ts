/** Small files as other systems write them, made here so that tests need no one else's. */

import { crc32 } from "../../src/format/crc32";
import { encodeSafetensorsHeader } from "../../src/format/safetensors-writer";
import { mindsporeStrategy } from "../../src/formats/mindspore/strategy";
import { mindsporeCrcTrailer, mindsporeValueHead } from "../../src/formats/mindspore/values";
import { Call, Name, Persistent, pickleOf, Tuple } from "./pickles";
import { zipOf } from "./zips";

export function floats(...values: number[]): Uint8Array {
  return new Uint8Array(Float32Array.from(values).buffer);
}

/** A float32 tensor on storage `key`, as torch pickles it. */
export function torchTensorCall(
  key: string,
  size: readonly number[],
  {
    stride = size.map((_, d) => size.slice(d + 1).reduce((a, b) => a * b, 1)),
    offset = 0,
    count = 0,
    view = undefined as readonly [first: number, count: number] | undefined,
  } = {},
): Call {
  const numel = count || size.reduce((a, b) => a * b, 1);
  const part = view === undefined ? [] : [new Tuple("part", ...view)];
  const storage = new Persistent(new Tuple("storage", new Name("torch", "FloatStorage"), key, "cpu", numel, ...part));
  const hooks = new Call(new Name("collections", "OrderedDict"), []);
  const args = [storage, offset, new Tuple(...size), new Tuple(...stride), false, hooks];
  return new Call(new Name("torch._utils", "_rebuild_tensor_v2"), args);
}

/** A `.pt` of this object with these storages. */
export function torchZip(object: unknown, storages: Readonly<Record<string, Uint8Array>>): Uint8Array {
  return torchZipOf(pickleOf(object, 2), storages);
}

export function torchZipOf(pickle: Uint8Array, storages: Readonly<Record<string, Uint8Array>>): Uint8Array {
  const data = Object.entries(storages).map(([key, bytes]): [string, Uint8Array] => [`made/data/${key}`, bytes]);
  const order = Buffer.from("little");
  return zipOf({ "made/data.pkl": pickle, "made/byteorder": order, ...Object.fromEntries(data) });
}

/** A module of TorchScript with these attributes, and constants of its code. */
export function torchScript(
  attributes: Readonly<Record<string, unknown>>,
  storages: Readonly<Record<string, Uint8Array>>,
  constants = new Tuple(),
): Uint8Array {
  const stored = (folder: string) =>
    Object.entries(storages).map(([key, bytes]): [string, Uint8Array] => [`a/${folder}/${key}`, bytes]);
  return zipOf({
    ...Object.fromEntries([...stored("data"), ...stored("constants")]),
    "a/data.pkl": pickleOf(new Call(new Name("__torch__.net", "Net"), [], attributes), 2),
    "a/code/__torch__/net.py": Buffer.from("class Net(Module): pass"),
    "a/constants.pkl": pickleOf(constants, 2),
  });
}

/** A torch file from before 1.6: pickles, then the storages. */
export function legacyTorch(object: unknown, storages: Readonly<Record<string, Uint8Array>>): Uint8Array {
  const magic = Uint8Array.of(0x80, 2, 0x8a, 10, 0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e);
  const raw = Object.values(storages).flatMap((bytes) => {
    const count = Buffer.alloc(8);
    count.writeBigUInt64LE(BigInt(bytes.length / 4));
    return [count, bytes];
  });
  const system = { protocol_version: 1001, little_endian: true };
  return Buffer.concat([
    magic,
    pickleOf(1001, 2),
    pickleOf(system, 2),
    pickleOf(object, 2),
    pickleOf(Object.keys(storages), 2),
    ...raw,
  ]);
}

const FLOAT32 = new Call(
  new Name("numpy", "dtype"),
  ["f4", false, true],
  new Tuple(3, "<", null, null, null, -1, -1, 0),
);

/** A NumPy array of float32; in protocol 2 its bytes are text. */
export function numpyCall(
  shape: readonly number[],
  bytes: Uint8Array,
  { columnMajor = false, asText = false } = {},
): Call {
  const reconstruct = new Name("numpy.core.multiarray", "_reconstruct");
  const text = Buffer.from(bytes).toString("latin1");
  const data = asText ? new Call(new Name("_codecs", "encode"), [text, "latin1"]) : bytes;
  const args = [new Name("numpy", "ndarray"), new Tuple(0), "b"];
  return new Call(reconstruct, args, new Tuple(1, new Tuple(...shape), FLOAT32, columnMajor, data));
}

const DCP = "torch.distributed.checkpoint.metadata";

/**
 * A DCP folder with a tensor `w` (or those of `names`) of [4, 2] in two chunks, and the number `epoch`. `stored`: the shape in the files of chunks; `properties`: the
 * state of the tensor's.
 */
export function dcpFolder({
  path = "__0_0.distcp",
  names = ["w"],
  stored = [2, 2],
  properties: state = new Tuple(new Name("torch", "float32")) as object,
} = {}): Record<string, Uint8Array> {
  const object = (name: string, state: object, module = DCP): Call => new Call(new Name(module, name), [], state);
  const size = (...dims: number[]): Call => new Call(new Name("torch", "Size"), [new Tuple(...dims)]);
  const files = [
    ...names.flatMap(() =>
      [floats(0, 1, 2, 3), floats(4, 5, 6, 7)].map((bytes) => torchZip(torchTensorCall("0", stored), { 0: bytes })),
    ),
    torchZip(3, {}),
  ];
  const places: [string, Call | null][] = [
    ...names.flatMap((name): [string, Call][] => [
      [name, size(0, 0)],
      [name, size(2, 0)],
    ]),
    ["epoch", null],
  ];
  let begin = 0;
  const storage = places.map(([fqn, offset], i): [Call, Call] => {
    const length = files[i]!.length;
    const info = { relative_path: path, offset: begin, length };
    begin += length;
    return [
      object("MetadataIndex", { fqn, offset }),
      object("_StorageInfo", info, "torch.distributed.checkpoint.filesystem"),
    ];
  });
  const properties = object("TensorProperties", state);
  const chunks = [0, 2].map((row) => object("ChunkStorageMetadata", { offsets: size(row, 0), sizes: size(2, 2) }));
  const metadata = object("Metadata", {
    state_dict_metadata: {
      ...Object.fromEntries(
        names.map((name) => [name, object("TensorStorageMetadata", { properties, size: size(4, 2), chunks })]),
      ),
      epoch: object("BytesStorageMetadata", {}),
    },
    storage_data: new Map(storage),
  });
  return { ".metadata": pickleOf(metadata), "__0_0.distcp": Buffer.concat(files) };
}

export function mindsporeFile(
  values: readonly (readonly [tag: string, dims: readonly number[], type: string, content: Uint8Array])[],
  { crc = false } = {},
): Uint8Array {
  const body = Buffer.concat(
    values.flatMap(([tag, dims, type, content]) => [mindsporeValueHead(tag, dims, type, content.length), content]),
  );
  return crc ? Buffer.concat([body, mindsporeCrcTrailer(crc32(body))]) : body;
}

export interface MadeLayout {
  readonly devices: readonly number[];
  /** -1 for a dimension that is not split. */
  readonly map: readonly number[];
  readonly shardStep?: number;
  readonly shardSize?: number;
}

export function strategyFile(layouts: Readonly<Record<string, MadeLayout>>): Uint8Array {
  const filled = Object.entries(layouts).map(([name, { devices, map, shardStep = 0, shardSize = 0 }]) => {
    return [name, { deviceMatrix: devices, tensorMap: map, shardStep, shardSize }] as const;
  });
  return mindsporeStrategy(new Map(filled));
}

export function safetensorsFile(
  tensors: readonly { name: string; shape: readonly number[]; data: Uint8Array }[],
  metadata: Record<string, string> = {},
): Uint8Array {
  const described = tensors.map(({ name, shape }) => ({ name, dtype: "F32" as const, shape }));
  return Buffer.concat([encodeSafetensorsHeader(described, metadata).bytes, ...tensors.map(({ data }) => data)]);
}

export function tfjsFolder({ paths = ["weights.bin"] } = {}): Record<string, Uint8Array> {
  const weights = [
    { name: "dense/kernel", shape: [2, 2], dtype: "float32" },
    { name: "iter", shape: [], dtype: "int32", group: "optimizer" },
    { name: "dense/kernel/m", shape: [2, 2], dtype: "float32", group: "optimizer" },
    { name: "dense/kernel/v", shape: [2, 2], dtype: "float32", group: "optimizer" },
  ];
  const model = { format: "layers-model", weightsManifest: [{ paths, weights }] };
  const steps = new Uint8Array(Int32Array.of(7).buffer);
  const data = Buffer.concat([floats(1, 2, 3, 4), steps, floats(5, 6, 7, 8), floats(9, 10, 11, 12)]);
  return { "model.json": Buffer.from(JSON.stringify(model)), "weights.bin": data };
}

/** A `.keras` archive of one dense layer with Adam's state, its weights written by the HDF5 library. */
export async function kerasFile({
  compressed = false,
  rows = 2,
  weights = Float32Array.from({ length: rows * 3 }, (_, i) => i + 1),
} = {}): Promise<{ keras: Uint8Array; h5: Uint8Array }> {
  const h5wasm = await import("h5wasm");
  const { FS } = (await h5wasm.ready) as unknown as {
    FS: { readFile(path: string): Uint8Array; unlink(path: string): void };
  };
  const file = new h5wasm.File("/made.h5", "w", { libver: ["earliest", "v114"] });
  const put = (group: string, name: string, data: Float32Array | BigInt64Array, shape: number[]): void => {
    const chunks = compressed && shape.length > 0 ? { chunks: shape, compression: "gzip" as const } : {};
    (file.get(group) as InstanceType<typeof h5wasm.Group>).create_dataset({ name, data, shape, ...chunks });
  };
  for (const path of ["layers", "layers/dense", "layers/dense/vars", "optimizer", "optimizer/vars"])
    file.create_group(path);
  put("layers/dense/vars", "0", weights, [rows, 3]);
  put("layers/dense/vars", "1", Float32Array.of(7, 8, 9), [3]);
  put("optimizer/vars", "0", BigInt64Array.of(42n), []);
  put("optimizer/vars", "1", Float32Array.of(0.001), []);
  put("optimizer/vars", "2", Float32Array.of(10, 11, 12, 13, 14, 15), [2, 3]);
  put("optimizer/vars", "3", Float32Array.of(20, 21, 22, 23, 24, 25), [2, 3]);
  put("optimizer/vars", "4", Float32Array.of(30, 31, 32), [3]);
  put("optimizer/vars", "5", Float32Array.of(40, 41, 42), [3]);
  file.close();
  const h5 = FS.readFile("/made.h5").slice();
  FS.unlink("/made.h5");
  const layers = [
    { class_name: "InputLayer", config: {} },
    { class_name: "Dense", config: { trainable: true } },
  ];
  const config = { config: { layers }, compile_config: { optimizer: { class_name: "Adam" } } };
  const keras = zipOf({ "config.json": Buffer.from(JSON.stringify(config)), "model.weights.h5": h5 });
  return { keras, h5 };
}
