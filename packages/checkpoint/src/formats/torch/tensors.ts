/** Tensors as PyTorch pickles them: a rebuild call on a storage, which lies outside of the pickle. */
import { bytesPerElement, type StoredDType } from "../../format/dtype";
import { isCount } from "../../layout/counts";
import { corrupt, unsupported } from "../bytes/errors";
import type { ForeignTensor } from "../bytes/foreign-tensor";
import type { ByteSource } from "../bytes/source";
import { stridedSource } from "../bytes/strided";
import { NUMPY_GLOBALS, numpyArray } from "../python/numpy-array";
import type { PickleLimits } from "../python/pickle";
import { PickleCall, PickleGlobal, PickleNumbers, PicklePersistent, PickleTuple } from "../python/pickle-objects";
import { PLAIN_GLOBALS } from "../python/values";

/** Element types as torch calls them, and the storages of those that have one of their own; newer ones have a storage of bytes. */
const TYPES: Readonly<Partial<Record<StoredDType, readonly [dtype: string, storage?: string]>>> = {
  F32: ["float32", "FloatStorage"],
  F64: ["float64", "DoubleStorage"],
  F16: ["float16", "HalfStorage"],
  BF16: ["bfloat16", "BFloat16Storage"],
  I64: ["int64", "LongStorage"],
  I32: ["int32", "IntStorage"],
  I16: ["int16", "ShortStorage"],
  I8: ["int8", "CharStorage"],
  U8: ["uint8", "ByteStorage"],
  BOOL: ["bool", "BoolStorage"],
  C64: ["complex64", "ComplexFloatStorage"],
  U64: ["uint64"],
  U32: ["uint32"],
  U16: ["uint16"],
  F8_E4M3: ["float8_e4m3fn"],
  F8_E5M2: ["float8_e5m2"],
  F8_E4M3FNUZ: ["float8_e4m3fnuz"],
  F8_E5M2FNUZ: ["float8_e5m2fnuz"],
  F8_E8M0: ["float8_e8m0fnu"],
};
const ENTRIES = Object.entries(TYPES) as [StoredDType, [string, string?]][];
const DTYPES = new Map(ENTRIES.map(([dtype, [name]]) => [name, dtype]));
const STORAGES = new Map(ENTRIES.flatMap(([dtype, [, storage]]) => (storage ? [[storage, dtype]] : [])));

/** Storages of numbers that we have no form for, and their width: a legacy file's storages are stepped over by it. */
const UNREAD_STORAGES = new Map([
  ["ComplexDoubleStorage", 16],
  ["QInt8Storage", 1],
  ["QUInt8Storage", 1],
  ["QInt32Storage", 4],
  ["QUInt4x2Storage", 1],
  ["QUInt2x4Storage", 1],
]);

/** Element types that are known to exist, and nothing more. */
const UNREAD_DTYPES = [
  "complex32",
  "complex128",
  "float4_e2m1fn_x2",
  ...["qint8", "quint8", "qint32", "quint4x2", "quint2x4", "bits8", "bits16", "bits1x8", "bits2x4", "bits4x2"],
  ...[1, 2, 3, 4, 5, 6, 7].flatMap((bits) => [`int${bits}`, `uint${bits}`]),
];

const torchName = (name: string): string => `torch.${name}`;
const REBUILD = "torch._utils._rebuild_";

/** Tensors whose elements do not lie in one strided storage: noted, so that the rest of the file can be read. */
const UNREAD_REBUILDS = [
  ...["sparse_tensor", "sparse_csr_tensor", "nested_tensor", "qtensor", "wrapper_subclass", "meta_tensor_no_storage"],
  ...["device_tensor_from_numpy", "device_tensor_from_cpu_tensor"],
];

/** Everything that a state dict may name. Source: what torch 2.13 writes for tensors, parameters and plain values. */
export const TORCH_PICKLE = {
  persistent: () => undefined,
  globals: new Set([
    ...PLAIN_GLOBALS,
    ...NUMPY_GLOBALS,
    ...[...STORAGES.keys(), ...UNREAD_STORAGES.keys(), ...DTYPES.keys(), ...UNREAD_DTYPES].map(torchName),
    ...["per_tensor_affine", "per_channel_affine", "per_channel_affine_float_qparams"].map(torchName),
    "torch._tensor._rebuild_from_type_v2",
    "torch.nn.parameter.Parameter",
    "torch.storage.UntypedStorage",
    "torch.Size",
    "torch.device",
    "torch.serialization._get_layout",
    ...["tensor", "tensor_v2", "tensor_v3", "parameter", "parameter_with_state"].map((name) => `${REBUILD}${name}`),
    ...UNREAD_REBUILDS.map((name) => `${REBUILD}${name}`),
  ]),
} satisfies PickleLimits;

/** What a persistent id names: element type (undefined for untyped), key and element count. */
export interface StorageId {
  readonly dtype: StoredDType | undefined;
  /** Bytes of one element; one where the storage has no element type. */
  readonly width: number;
  readonly key: string;
  readonly count: number;
  /** A legacy file may hold a storage that is a part of another one: its first element there. */
  readonly first: number;
}

/** How torch names a dtype and its storage, for writing: newer dtypes have a storage of bytes only. */
export function torchTypeNames(dtype: StoredDType): { dtype: string; storage: string | undefined } {
  const [name, storage] = TYPES[dtype]!;
  return { dtype: name, storage };
}

/** The dtype that PyTorch, NumPy and JAX call so. */
export const dtypeNamed = (name: string): StoredDType | undefined => DTYPES.get(name);

export function torchDType(value: unknown): StoredDType | undefined {
  if (!(value instanceof PickleGlobal) || !value.name.startsWith("torch.")) return undefined;
  return DTYPES.get(value.name.slice("torch.".length));
}

/** @throws OptError CORRUPT for a persistent id that names no storage */
export function storageId(value: unknown, path: string): StorageId {
  const id = value instanceof PicklePersistent && value.id instanceof PickleTuple ? value.id.items : [];
  const [kind, type, key, , whole, view] = id;
  // A legacy file's storage may be a part of the one that is stored, whose length its id then names.
  const [first, count] = view instanceof PickleTuple ? view.items.slice(1) : [0, whole];
  const name = type instanceof PickleGlobal ? type.name.replace("torch.", "") : "";
  const dtype = STORAGES.get(name);
  if (kind !== "storage" || (typeof key !== "string" && typeof key !== "number") || !isCount(count)) {
    throw corrupt(path, "a tensor's storage has no valid id");
  }
  const unread = UNREAD_STORAGES.get(name);
  if (dtype === undefined && unread === undefined && name !== "storage.UntypedStorage") {
    throw corrupt(path, "a storage has no element type");
  }
  if (!isCount(first)) throw corrupt(path, "a storage's view has no valid offset");
  const width = dtype === undefined ? (unread ?? 1) : bytesPerElement(dtype);
  return { dtype, width, key: String(key), count, first };
}

/** The tensor (or NumPy array) that an object describes, or undefined when it describes none. @throws OptError CORRUPT, UNSUPPORTED */
export function torchTensor(
  value: unknown,
  pickle: ByteSource,
  storage: (id: StorageId) => ByteSource,
): ForeignTensor | undefined {
  if (!(value instanceof PickleCall)) return undefined;
  const array = numpyArray(value, pickle);
  if (array !== undefined) return array;
  if (value.callable === "torch._tensor._rebuild_from_type_v2") {
    const [rebuild, , given] = value.args;
    const isPlain = rebuild instanceof PickleGlobal && /_rebuild_tensor_v\d$/.test(rebuild.name);
    if (!isPlain || !(given instanceof PickleTuple)) throw unread(pickle.path, "a tensor of a class of its own");
    return torchTensor(new PickleCall(rebuild.name, given.items), pickle, storage);
  }
  if (!value.callable.startsWith(REBUILD)) return undefined;
  const kind = value.callable.slice(REBUILD.length);
  if (UNREAD_REBUILDS.includes(kind)) throw unread(pickle.path, `a ${kind}`);
  if (kind.startsWith("parameter")) {
    const [data] = value.args;
    // Parameters hold tensors only, so one step inwards is enough and nothing can nest without end.
    if (!(data instanceof PickleCall) || !data.callable.startsWith(`${REBUILD}tensor`)) {
      throw corrupt(pickle.path, "a parameter holds no tensor");
    }
    return torchTensor(data, pickle, storage);
  }
  const [persistent, offset, size, stride, , , ...more] = value.args;
  const id = storageId(persistent, pickle.path);
  const dtype = kind === "tensor_v3" ? torchDType(more.shift()) : id.dtype;
  // `x.conj()` and its imaginary part share the elements of x, and have another sign.
  const [changes] = more;
  if (changes instanceof Map && [...changes.values()].some((isSet) => isSet !== false))
    throw unread(pickle.path, `a view whose elements lie there otherwise (${[...changes.keys()].join(", ")})`);
  if (dtype === undefined) throw unread(pickle.path, "an element type that is not known here");
  const shape = counts(size, pickle.path);
  const strides = counts(stride, pickle.path);
  if (!isCount(offset)) throw corrupt(pickle.path, "a tensor begins before its storage");
  const view = { bytesPerElement: bytesPerElement(dtype), offset, shape, strides };
  return { dtype, shape, bytes: stridedSource(storage(id), view) };
}

/** The numbers of a tuple or `torch.Size`. @throws OptError CORRUPT unless all are counts */
export function counts(value: unknown, path: string): readonly number[] {
  if (value instanceof PickleNumbers) return value.items;
  const inner = value instanceof PickleCall && value.callable === "torch.Size" ? value.args[0] : value;
  const items = inner instanceof PickleTuple ? inner.items : inner;
  if (!Array.isArray(items) || !items.every(isCount)) throw corrupt(path, "a shape is no tuple of counts");
  return items;
}

const unread = (path: string, what: string) => unsupported(path, `it is ${what}`);
