/** Files whose headers lie: each is rejected by a rule, in time, and nothing outside of its folder is looked at. */
import { OptError } from "@opt/core";
import { expect, it } from "vitest";
import { ggufOf } from "../../testing/files/gguf";
import * as made from "../../testing/files/made-files";
import { messagePackOf } from "../../testing/files/message-pack";
import { npyOf } from "../../testing/files/numpy";
import { json, ocdbtFolder, treeMetadata, zarrValues } from "../../testing/files/orbax-files";
import { Call, Name, Persistent, pickleOf, Tuple } from "../../testing/files/pickles";
import { zero2Folder } from "../../testing/files/zero-files";
import { zipOf } from "../../testing/files/zips";
import { digest } from "../../testing/fuzz";

type Files = Readonly<Record<string, Uint8Array>>;
/** The first of the files is opened; with a folder's, the folder is. */
type Lie = readonly [what: string, code: string, files: Files];

const { floats, torchTensorCall: tensor, torchZip, dcpFolder, mindsporeFile } = made;
const HUGE = 2 ** 52;

/** These bytes with others written over them, at a place or counted from the end. */
function over(bytes: Uint8Array, at: number, ...values: number[]): Uint8Array {
  const copy = Uint8Array.from(bytes);
  copy.set(values, at < 0 ? copy.length + at : at);
  return copy;
}

/** The last place of a text in these bytes, and so many further. */
const placeOf = (bytes: Uint8Array, text: string, further = 0): number =>
  Buffer.from(bytes).lastIndexOf(text, undefined, "latin1") + further;

const uint64 = (value: bigint): Buffer => Buffer.from(BigUint64Array.of(value).buffer);

function st(header: unknown, data = floats(1, 2)): Files {
  const text = Buffer.from(typeof header === "string" ? header : JSON.stringify(header));
  return { "a.safetensors": Buffer.concat([uint64(BigInt(text.length)), text, data]) };
}
const entry = (shape: unknown, data_offsets: unknown = [0, 8], dtype: unknown = "F32") => ({
  dtype,
  shape,
  data_offsets,
});
const one = (...of: Parameters<typeof entry>): Files => st({ w: entry(...of) });

const index = (weight_map: unknown, name = "m.safetensors.index.json"): Files => ({ [name]: json({ weight_map }) });
const shard = (info: unknown): Files => ({
  "": new Uint8Array(0),
  "a.safetensors": made.safetensorsFile([{ name: "w", shape: [2], data: floats(1, 2) }], {
    DCP_SHARDING_INFO: typeof info === "string" ? info : JSON.stringify({ w: { saved_offsets: info } }),
  }),
});

const pt = (object: unknown, storages: Files = { 0: floats(1, 2) }): Files => ({ "a.pt": torchZip(object, storages) });
const ops = (...parts: (number | string | Uint8Array)[]): Files => ({
  "a.pt": made.torchZipOf(
    Buffer.concat(parts.map((part) => (typeof part === "number" ? Uint8Array.of(part) : Buffer.from(part as string)))),
    {},
  ),
});
const called = (module: string, name: string, ...args: unknown[]) => pt({ w: new Call(new Name(module, name), args) });
const PT = torchZip({ w: tensor("0", [2]) }, { 0: floats(1, 2) });
/** That archive with a field of its end, or of the last member's entry in its directory, written over. */
const ended = (further: number, ...values: number[]): Files => ({
  "a.pt": over(PT, placeOf(PT, "PK\x05\x06", further), ...values),
});
const listed = (further: number, ...values: number[]): Files => ({
  "a.pt": over(PT, placeOf(PT, "PK\x01\x02", further), ...values),
});

const folder = (files: Files): Files => ({ "": new Uint8Array(0), ...files });
const DCP = dcpFolder();
/** A DCP folder in whose metadata the first of these bytes are replaced. */
function dcp(from: Uint8Array, to: Uint8Array): Files {
  const metadata = DCP[".metadata"]!;
  const at = Buffer.from(metadata).indexOf(from);
  expect(at).toBeGreaterThan(0);
  return folder({
    ...DCP,
    ".metadata": Buffer.concat([metadata.subarray(0, at), to, metadata.subarray(at + from.length)]),
  });
}
const text = (value: string): Uint8Array => pickleOf(value).subarray(2, -1);
const number = (value: number): Uint8Array => pickleOf(value).subarray(2, -1);
const field = (name: string, value: number): Uint8Array => Buffer.concat([text(name), number(value)]);

const gguf = (...[tensors, values = {}, version]: Partial<Parameters<typeof ggufOf>>): Files => ({
  "a.gguf": ggufOf(tensors ?? [], values, version),
});
const F32 = { name: "w", dims: [2], type: 0, data: floats(1, 2) };
const GGUF = ggufOf([F32], { n: 1 });
const ckpt = (...[tag, dims, type, content]: Parameters<typeof mindsporeFile>[0][number]): Files => ({
  "a.ckpt": mindsporeFile([[tag, dims, type, content]]),
});
const packed = (...bytes: number[]): Files => ({ "a.msgpack": Uint8Array.from(bytes) });
/** flax keeps an array as an extension of (shape, dtype, bytes). */
function flax(shape: readonly number[], dtype = "float32"): Files {
  const inner = Buffer.concat([
    Uint8Array.of(0x93),
    messagePackOf(shape),
    messagePackOf(dtype),
    Uint8Array.of(0xc4, 8),
    floats(1, 2),
  ]);
  return { "a.msgpack": Buffer.concat([Uint8Array.of(0x81, 0xa1, 0x77, 0xc7, inner.length, 1), inner]) };
}
const npy = (type: string, shape: string): Files => ({ "a.npy": npyOf(type, shape, floats(1, 2)) });
const NPY = npyOf("'<f4'", "(2,)", floats(1, 2));
const tfjs = (weight: object, paths: unknown = ["weights.bin"]): Files => ({
  "model.json": json({
    weightsManifest: [{ paths, weights: [{ name: "w", shape: [2], dtype: "float32", ...weight }] }],
  }),
  "weights.bin": floats(1, 2),
});
const zarr = (change: object): Files => {
  const values = zarrValues();
  const described = { ...JSON.parse(Buffer.from(values["w/.zarray"]!).toString()), ...change };
  return folder({ _METADATA: treeMetadata(), ...values, "w/.zarray": json(described) });
};
const ocdbt = (...[values, options]: Partial<Parameters<typeof ocdbtFolder>>): Files =>
  folder({ _METADATA: treeMetadata(), ...ocdbtFolder(values ?? zarrValues(), options) });

const LIES: readonly Lie[] = [
  [
    "safetensors: a header beyond the file",
    "CORRUPT",
    { "a.safetensors": Buffer.concat([uint64(1000n), Buffer.from("{}")]) },
  ],
  [
    "safetensors: a header of 2^40 bytes",
    "CORRUPT",
    { "a.safetensors": Buffer.concat([uint64(2n ** 40n), Buffer.from("{}")]) },
  ],
  [
    "safetensors: a header of 2^63 bytes",
    "CORRUPT",
    { "a.safetensors": Buffer.concat([uint64(2n ** 63n), Buffer.from("{}")]) },
  ],
  ["safetensors: seven bytes", "CORRUPT", { "a.safetensors": new Uint8Array(7) }],
  ["safetensors: a header that is no JSON", "CORRUPT", st('{"w":')],
  ["safetensors: a header that nests", "CORRUPT", st(`{"w":${"[".repeat(200_000)}`)],
  [
    "safetensors: a name twice",
    "CORRUPT",
    st('{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}'),
  ],
  ["safetensors: an end before its begin", "CORRUPT", one([2], [8, 0])],
  ["safetensors: a negative begin", "CORRUPT", one([2], [-8, 0])],
  ["safetensors: an end beyond the file", "CORRUPT", one([4], [0, 16])],
  ["safetensors: two tensors in one place", "CORRUPT", st({ a: entry([2]), b: entry([2]) })],
  ["safetensors: a hole", "CORRUPT", st({ a: entry([1], [0, 4]), b: entry([1], [8, 12]) }, floats(1, 2, 3))],
  ["safetensors: bytes of no tensor", "CORRUPT", one([1], [0, 4])],
  ["safetensors: a shape whose product wraps", "CORRUPT", one([2 ** 32, 2 ** 32], [0, 8])],
  ["safetensors: a negative dimension", "CORRUPT", one([-1, -2])],
  ["safetensors: half a dimension", "CORRUPT", one([0.5, 4])],
  ["safetensors: a shape that is text", "CORRUPT", one("2")],
  ["safetensors: a number for a dtype", "CORRUPT", one([2], [0, 8], 5)],
  ["safetensors: metadata that is no text", "CORRUPT", st({ __metadata__: { a: 1 }, w: entry([2]) })],
  ["safetensors shards: a negative offset", "CORRUPT", shard([-1])],
  ["safetensors shards: an offset of another rank", "CORRUPT", shard([0, 0])],
  ["safetensors shards: an offset past all numbers", "CORRUPT", shard([Number.MAX_SAFE_INTEGER])],
  ["safetensors shards: offsets that are no JSON", "CORRUPT", shard("{")],
  ["index: a missing file", "MISSING", index({ w: "b.safetensors" })],
  ["index: a file above", "REFUSED", index({ w: "../b.safetensors" })],
  ["index: a file above, by a folder", "REFUSED", index({ w: "a/../../b.safetensors" })],
  ["index: an absolute path", "REFUSED", index({ w: "/etc/passwd" })],
  ["index: a path of Windows", "REFUSED", index({ w: "..\\b.safetensors" })],
  ["index: a drive", "REFUSED", index({ w: "C:b.safetensors" })],
  ["index: a name that a zero byte cuts", "REFUSED", index({ w: "a\u0000.safetensors" })],
  ["index: a number for a file", "CORRUPT", index({ w: 1 })],
  ["index: a list for a map", "CORRUPT", index(["w"])],
  ["index: itself as the file", "CORRUPT", index({ w: "m.safetensors.index.json" })],
  ["index: a tensor that its file lacks", "MISSING", { ...index({ v: "a.safetensors" }), ...one([2]) }],
  ["index of PyTorch: a file above", "REFUSED", index({ w: "../b.bin" }, "pytorch_model.bin.index.json")],
  ["index of PyTorch: a missing file", "MISSING", index({ w: "b.bin" }, "pytorch_model.bin.index.json")],
  ["zip: a directory beyond the file", "CORRUPT", ended(16, 0xff, 0xff, 0xff, 0x7f)],
  ["zip: more members than bytes", "CORRUPT", ended(8, 0xfe, 0xff, 0xfe, 0xff)],
  ["zip: a directory of 2 GB", "CORRUPT", ended(12, 0xff, 0xff, 0xff, 0x7f)],
  ["zip: a comment beyond the file", "CORRUPT", ended(20, 0xff, 0xff)],
  ["zip: a member beyond the file", "CORRUPT", listed(42, 0xff, 0xff, 0xff, 0x7f)],
  ["zip: a member of 2 GB", "CORRUPT", listed(20, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f)],
  ["zip: a name beyond the directory", "CORRUPT", listed(28, 0xff, 0xff)],
  ["zip: a checksum of other bytes", "CORRUPT", listed(16, 1, 2, 3, 4)],
  ["zip: packing of no one", "UNSUPPORTED", listed(10, 99)],
  ["zip: a member that unpacks to less", "CORRUPT", { "a.npz": zipOf({ "a.npy": NPY }, { deflated: { more: 1000 } }) }],
  ["pickle: os.system", "REFUSED", called("os", "system", "true")],
  ["pickle: eval", "REFUSED", called("builtins", "eval", "1")],
  ["pickle: subprocess.Popen", "REFUSED", called("subprocess", "Popen", "true")],
  ["pickle: an opcode of no data", "CORRUPT", ops(0x80, 2, "ios\nsystem\n.")],
  ["pickle: protocol 200", "CORRUPT", ops(0x80, 200, "N.")],
  ["pickle: no end", "CORRUPT", ops(0x80, 2, "N")],
  ["pickle: an empty stack", "CORRUPT", ops(0x80, 2, ".")],
  ["pickle: a memo that nobody stored", "CORRUPT", ops(0x80, 2, "h\u0005.")],
  ["pickle: a text of 2^62 bytes", "CORRUPT", ops(0x80, 4, 0x8d, uint64(2n ** 62n), "a.")],
  ["pickle: an integer of 2 GB", "CORRUPT", ops(0x80, 2, 0x8b, Uint8Array.of(0xff, 0xff, 0xff, 0x7f), ".")],
  ["pickle: state for nothing", "CORRUPT", ops(0x80, 2, "NNb.")],
  ["pickle: a call of a text", "CORRUPT", ops(0x80, 2, "U\u0001a)R.")],
  ["torch: a negative dimension", "CORRUPT", pt({ w: tensor("0", [-2], { count: 2, stride: [1] }) })],
  ["torch: a negative stride", "CORRUPT", pt({ w: tensor("0", [2], { stride: [-1] }) })],
  ["torch: a stride beyond the storage", "CORRUPT", pt({ w: tensor("0", [2], { stride: [HUGE] }) })],
  ["torch: an offset beyond the storage", "CORRUPT", pt({ w: tensor("0", [2], { offset: HUGE }) })],
  ["torch: a shape whose product wraps", "CORRUPT", pt({ w: tensor("0", [2 ** 30, 2 ** 30], { count: 2 }) })],
  ["torch: more dimensions than elements", "CORRUPT", pt({ w: tensor("0", [2, 2], { stride: [1], count: 2 }) })],
  ["torch: a storage that says more than it has", "CORRUPT", pt({ w: tensor("0", [4]) })],
  ["torch: a storage that is nowhere", "MISSING", pt({ w: tensor("7", [2]) })],
  ["torch: a storage above", "MISSING", pt({ w: tensor("../../../etc/passwd", [2]) })],
  [
    "torch: an id of no storage",
    "CORRUPT",
    pt({
      w: new Call(new Name("torch._utils", "_rebuild_tensor_v2"), [new Persistent("0"), 0, new Tuple(2), new Tuple(1)]),
    }),
  ],
  [
    "torch: one name twice",
    "DUPLICATE",
    pt(
      new Map<unknown, unknown>([
        ["1", tensor("0", [2])],
        [1, tensor("0", [2])],
      ]),
    ),
  ],
  [
    "torch before 1.6: a storage of other length",
    "CORRUPT",
    { "a.pt": made.legacyTorch({ w: tensor("0", [2]) }, { 0: floats(1) }) },
  ],
  ["DCP: a chunk before its file", "CORRUPT", dcp(field("offset", 0), field("offset", -8))],
  ["DCP: a chunk beyond its file", "CORRUPT", dcp(field("offset", 0), field("offset", 2 ** 30))],
  ["DCP: a file above", "REFUSED", dcp(text("__0_0.distcp"), text("../0.distcp"))],
  ["DCP: an absolute path", "REFUSED", dcp(text("__0_0.distcp"), text("/etc/passwd"))],
  ["DCP: a missing file", "MISSING", dcp(text("__0_0.distcp"), text("__9_0.distcp"))],
  ["DCP: no table of places", "CORRUPT", dcp(text("storage_data"), text("storage_date"))],
  [
    "DCP: places of another tensor",
    "MISSING",
    dcp(Buffer.concat([text("fqn"), text("w")]), Buffer.concat([text("fqn"), text("v")])),
  ],
  ["DCP: a chunk without a size", "CORRUPT", dcp(text("sizes"), text("sizez"))],
  ["DCP: metadata of another class", "CORRUPT", folder({ ...DCP, ".metadata": pickleOf({ state_dict_metadata: {} }) })],
  ["DCP: metadata that ends early", "CORRUPT", folder({ ...DCP, ".metadata": DCP[".metadata"]!.subarray(0, -200) })],
  [
    "Megatron: an iteration above",
    "MISSING",
    folder({ "latest_checkpointed_iteration.txt": Buffer.from("../../etc") }),
  ],
  [
    "Megatron: an iteration that is missing",
    "MISSING",
    folder({ "latest_checkpointed_iteration.txt": Buffer.from("99") }),
  ],
  ["ZeRO: more partitions than files", "MISSING", folder(zero2Folder({ count: 99 }))],
  ["ZeRO: partitions that are too short", "CORRUPT", folder(zero2Folder({ padding: -6 }))],
  ["MindSpore: a negative dimension", "CORRUPT", ckpt("w", [-2], "Float32", floats(1, 2))],
  ["MindSpore: a shape whose product wraps", "CORRUPT", ckpt("w", [2 ** 31, 2 ** 31, 4], "Float32", floats(1, 2))],
  ["MindSpore: a shape of more than there is", "CORRUPT", ckpt("w", [3], "Float32", floats(1, 2))],
  [
    "MindSpore: a file cut short",
    "CORRUPT",
    { "a.ckpt": ckpt("w", [2], "Float32", floats(1, 2))["a.ckpt"]!.subarray(0, -3) },
  ],
  ["MindSpore: an encrypted file", "UNSUPPORTED", { "a.ckpt": Uint8Array.of(0xd8, 0x5e, 0x3a, 0x7f, 1, 2, 3, 4) }],
  ["Keras: an archive without weights", "MISSING", { "a.keras": zipOf({ "config.json": Buffer.from("{}") }) }],
  ["Keras: weights that are none", "CORRUPT", { "a.keras": zipOf({ "model.weights.h5": Buffer.from("text") }) }],
  ["TF.js: a shape whose product wraps", "CORRUPT", tfjs({ shape: [2 ** 32, 2 ** 32] })],
  ["TF.js: a negative dimension", "CORRUPT", tfjs({ shape: [-2] })],
  ["TF.js: a shape of more than there is", "CORRUPT", tfjs({ shape: [4] })],
  ["TF.js: files above", "REFUSED", tfjs({}, ["../weights.bin"])],
  ["TF.js: paths that are none", "REFUSED", tfjs({}, [1])],
  ["GGUF: 2^60 tensors", "CORRUPT", { "a.gguf": over(GGUF, 8, ...uint64(2n ** 60n)) }],
  ["GGUF: 2^50 values", "CORRUPT", { "a.gguf": over(GGUF, 16, ...uint64(2n ** 50n)) }],
  ["GGUF: a text of 2^50 bytes", "CORRUPT", { "a.gguf": over(GGUF, 24, ...uint64(2n ** 50n)) }],
  ["GGUF: a shape whose product wraps", "CORRUPT", gguf([{ ...F32, dims: [2 ** 40, 2 ** 40] }])],
  ["GGUF: a tensor beyond the file", "CORRUPT", gguf([{ ...F32, dims: [2 ** 20] }])],
  ["GGUF: 100 dimensions", "CORRUPT", gguf([{ ...F32, dims: new Array<number>(100).fill(1) }])],
  ["GGUF: a version of no one", "UNSUPPORTED", gguf([F32], {}, 99)],
  ["flax: a map of 2^32 - 1 members", "CORRUPT", packed(0xdf, 255, 255, 255, 255)],
  ["flax: a list of 2^32 - 1 items", "CORRUPT", packed(0x81, 0xa1, 0x61, 0xdd, 255, 255, 255, 255)],
  ["flax: a text beyond the file", "CORRUPT", packed(0x81, 0xdb, 255, 255, 255, 255, 0x61)],
  ["flax: lists in lists", "CORRUPT", packed(0x81, 0xa1, 0x61, ...new Array<number>(100_000).fill(0x91), 0xc0)],
  ["flax: an array of more than there is", "CORRUPT", flax([3])],
  ["flax: a shape whose product wraps", "CORRUPT", flax([2 ** 31, 2 ** 31, 4])],
  ["flax: a negative dimension", "CORRUPT", flax([-2])],
  ["npy: a header beyond the file", "CORRUPT", { "a.npy": over(NPY, 8, 0xff, 0xff) }],
  ["npy: a negative dimension", "CORRUPT", npy("'<f4'", "(-2,)")],
  ["npy: a shape whose product wraps", "CORRUPT", npy("'<f4'", "(4294967296, 4294967296)")],
  ["npy: a shape of more than there is", "CORRUPT", npy("'<f4'", "(3,)")],
  ["npy: code for a shape", "CORRUPT", npy("'<f4'", "(__import__('os'),)")],
  ["npy: a version of no one", "CORRUPT", { "a.npy": over(NPY, 6, 9) }],
  ["Orbax: a shape whose product wraps", "CORRUPT", zarr({ shape: [2 ** 40, 2 ** 40] })],
  ["Orbax: chunks of nothing", "CORRUPT", zarr({ chunks: [0, 3] })],
  ["Orbax: chunks of another rank", "CORRUPT", zarr({ chunks: [2] })],
  ["Orbax: a negative dimension", "CORRUPT", zarr({ shape: [-3, 4] })],
  ["Orbax: chunks whose product wraps", "CORRUPT", zarr({ chunks: [2 ** 40, 2 ** 40] })],
  ["OCDBT: a file above", "REFUSED", ocdbt(zarrValues(), { path: "../0" })],
  ["OCDBT: a node that is its own leaf", "CORRUPT", ocdbt(zarrValues(), { cycle: true })],
  [
    "OCDBT: a manifest of no bytes",
    "CORRUPT",
    folder({ _METADATA: treeMetadata(), "manifest.ocdbt": new Uint8Array(0) }),
  ],
];

it("are more than 77", () => expect(LIES.length).toBeGreaterThan(77));

it.each(LIES)("%s is %s", { timeout: 10_000 }, async (_, code, { "": whole, ...files }) => {
  const outcome = await digest(files, whole ? "" : Object.keys(files)[0]!).catch((error: unknown) => error);
  if (!(outcome instanceof OptError)) throw outcome ?? new Error("nothing was thrown");
  expect(outcome.code).toBe(code);
});
