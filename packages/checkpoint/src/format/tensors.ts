/** What users hand over to be saved and get back: core Tensors, or plain objects for what tensors cannot hold. */
import { check, hostBytes, OptError, show, type Tensor, versionOf } from "@opt/core";
import { boxAfter } from "@opt/core/backend";
import { type Box, describeBox, elementCount, elementsIn, fits, wholeOf } from "../layout/box";
import { isCount } from "../layout/counts";
import { bytesPerElement, type StoredDType, storedDType } from "./dtype";
import { type Role, redescribed, type SelectedTensor, type SourceTensor } from "./source";

/** Elements row-major and little-endian: bytes, or a typed array of the dtype's own kind; 16-bit floats may be a Uint16Array. */
export interface PlainTensor {
  /** `f32` or `F32`: either way of writing it. */
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data: ArrayBufferView;
  readonly role?: Role;
  /** The parameter whose state this is. */
  readonly follows?: string;
}

/** Any number of boxes of a tensor, for slices that no mesh describes; `shape` is the whole tensor's. */
export interface PartialTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly boxes: readonly (Box & { readonly data: ArrayBufferView })[];
  readonly role?: Role;
  readonly follows?: string;
}

/** A Tensor with what its name does not tell. */
export interface AnnotatedTensor {
  readonly tensor: Tensor;
  readonly role?: Role;
  readonly follows?: string;
}

export type SavedTensor = Tensor | AnnotatedTensor | PlainTensor | PartialTensor;

/** One tensor to be saved, whatever it was handed over as. */
export interface LocalTensor {
  readonly name: string;
  readonly dtype: StoredDType;
  readonly shape: readonly number[];
  readonly role: Role;
  readonly follows?: string;
  /** Explicit boxes; without them the bytes are those of `shape`. */
  readonly boxes?: readonly Box[];
  /** The bytes, of explicit box number `box` or of all. Called once, at the moment of writing or of the snapshot. */
  bytes(box: number): Uint8Array | Promise<Uint8Array>;
  /** Of a Tensor: how often it was overwritten before, and now. */
  readonly version?: number;
  versionNow?(): number;
}

/** How optimizers name their state: `<state>.<parameter>`, `<parameter>.<state>` or `<parameter>/<state>`. */
export const STATE_NAMES: ReadonlySet<string> = new Set(
  (
    "exp_avg exp_avg_sq max_exp_avg_sq master_param momentum_buffer mu_product step square_avg acc_delta grad_avg exp_inf prev sum " +
    "step_size ax eta mu exp_avg_fast exp_avg_slow z weight_sum lr_max row_var col_var variance " +
    "moments moment1 moment2 vhat adam_m adam_v accum m v"
  ).split(" "),
);

/** What only ours keep, behind the parameter's name: before one they could be a module's. */
const OWN_STATE =
  /^(exp_avg_diff|previous_grad|projection|update_norm|neuron_sq|grad_sum|initial_param|hessian|numerator|d|(factor|basis|inverse_root)_\d+(_\d+)?)$/;

/** The tensor among `names` whose optimizer state a name says it is. */
export function followedName(name: string, names: { has(name: string): boolean }): string | undefined {
  for (let i = name.indexOf("."); i > 0; i = name.indexOf(".", i + 1)) {
    const [head, tail] = [name.slice(0, i), name.slice(i + 1)];
    if (STATE_NAMES.has(head.slice(head.lastIndexOf(".") + 1)) && names.has(tail)) return tail;
  }
  const end = Math.max(name.lastIndexOf("."), name.lastIndexOf("/"));
  const word = name.slice(end + 1);
  if (end > 0 && (STATE_NAMES.has(word) || OWN_STATE.test(word)) && names.has(name.slice(0, end)))
    return name.slice(0, end);
  return undefined;
}

/** What a tensor is of which nothing else is said. */
function roleOf(shape: readonly number[], follows: string | undefined): Role {
  return follows !== undefined ? "state" : shape.length === 0 ? "scalar" : "param";
}

/** The tensor with its role: as it says itself, else as `told`, else as its name among all looks. */
export function withRole(
  tensor: SourceTensor,
  all: { has(name: string): boolean },
  told?: string,
): SelectedTensor & { readonly role: Role } {
  const guessed = tensor.role === undefined ? (told ?? followedName(tensor.name, all)) : undefined;
  const follows = tensor.follows ?? guessed;
  const role = (follows === undefined && tensor.role) || roleOf(tensor.shape, follows);
  return redescribed(tensor, { role, ...(follows === undefined ? {} : { follows }) }) as SelectedTensor & {
    role: Role;
  };
}

export function isTensor(value: unknown): value is Tensor {
  // By shape, not by class: an ESM and a CommonJS copy of core may both be loaded.
  return (
    typeof value === "object" && value !== null && typeof (value as Tensor).bytes === "function" && "device" in value
  );
}

function isAnnotated(value: unknown): value is AnnotatedTensor {
  return typeof value === "object" && value !== null && "tensor" in value && isTensor(value.tensor);
}

/** Of promises and classes with getters no tensor would be seen. */
function isPlain(value: unknown): boolean {
  return Object(value) === value && Object.getPrototypeOf(Object.getPrototypeOf(value) ?? Object.prototype) === null;
}

/** Checks everything handed over before anything is written. @throws OptError BAD_ARGUMENT, BAD_SHAPE, BAD_DTYPE, DUPLICATE */
export function localTensors(
  tensors: Readonly<Record<string, SavedTensor>> | Iterable<readonly [string, SavedTensor]>,
  where = "saveCheckpoint",
): LocalTensor[] {
  const isIterable = typeof tensors === "object" && tensors !== null && Symbol.iterator in tensors;
  const isRecord = isIterable || isPlain(tensors);
  const pairs = isIterable ? [...tensors] : isRecord ? Object.entries(tensors) : [];
  const areNamed = isRecord && pairs.every((pair) => Array.isArray(pair) && typeof pair[0] === "string");
  check(
    areNamed,
    "BAD_ARGUMENT",
    where,
    () => `tensors must be a plain object of tensors by name, got ${show(tensors)}.`,
    "For example model.stateDict().",
  );
  const names = new Map(pairs);
  if (names.size < pairs.length) throw new OptError("DUPLICATE", where, "a name occurs twice.", "Rename one.");
  return pairs.map(([name, value]) => localTensor(name, value, names));
}

function localTensor(name: string, saved: SavedTensor, names: ReadonlyMap<string, SavedTensor>): LocalTensor {
  const where = `tensor ${JSON.stringify(name)}`;
  const value = isAnnotated(saved) ? saved.tensor : saved;
  const isName = name !== "" && name !== "__metadata__";
  check(isName, "BAD_ARGUMENT", where, () => "a tensor needs a name of its own.", "Rename it.");
  const isOne = typeof value === "object" && value !== null && "shape" in value && "dtype" in value;
  check(
    isOne,
    "BAD_ARGUMENT",
    where,
    () => "must be a Tensor or { dtype, shape, data }.",
    "Put other things into values.",
  );
  const dtype = storedDType(value.dtype, where);
  const isShape = Array.isArray(value.shape) && value.shape.every(isCount) && elementCount(value.shape) !== undefined;
  check(isShape, "BAD_SHAPE", where, () => `shape must list whole numbers, got ${JSON.stringify(value.shape)}.`);
  const shape = [...value.shape] as number[];
  const given: { role?: Role; follows?: string } = isTensor(saved) ? {} : saved;
  const follows = given.follows ?? followedName(name, names);
  const role = given.role ?? roleOf(shape, follows);
  const common = { name, dtype, shape, role, ...(follows === undefined ? {} : { follows }) };
  if (isTensor(value)) {
    const versionNow = () => versionOf(value);
    const isWhole = isWholeBesideParts(value, follows === undefined ? undefined : names.get(follows));
    const { placement } = value;
    const isOfBlocks = placement?.cuts.some(({ multiple = 1 }) => multiple > 1) ?? false;
    return {
      ...common,
      ...(isWhole && { boxes: [wholeOf(shape)] }),
      // No layout has such cuts: they are saved as the boxes that they leave.
      ...(isOfBlocks && { shape: placement!.shape, boxes: [boxAfter(placement!)] }),
      bytes: () => tensorBytes(value),
      version: versionNow(),
      versionNow,
    };
  }
  if (!("boxes" in value)) {
    const bytes = plainBytes(value.data, dtype, wholeOf(shape), where);
    return { ...common, bytes: () => bytes };
  }
  for (const box of value.boxes) {
    check(
      fits(box, shape),
      "BAD_SHAPE",
      where,
      () => `box ${describeBox(box)} leaves the shape [${shape}].`,
      "shape is the whole tensor's.",
    );
  }
  const pieces = value.boxes.map((box) => plainBytes(box.data, dtype, box, where));
  const boxes = value.boxes.map(({ offset, size }) => ({ offset: [...offset], size: [...size] }));
  return { ...common, boxes, bytes: (box) => pieces[box]! };
}

/** State of other shapes is whole on every rank where its parameter is divided, whatever the parameter's layout says. */
function isWholeBesideParts(state: Tensor, parameter: SavedTensor | undefined): boolean {
  const found = isAnnotated(parameter) ? parameter.tensor : parameter;
  return isTensor(found) && (found.placement ?? null) !== null && (state.placement ?? null) === null;
}

/** The bytes of a Tensor: where they lie, if its device lets us, and without waiting where it can. */
function tensorBytes(tensor: Tensor): Uint8Array | Promise<Uint8Array> {
  const inPlace = hostBytes(tensor, "read");
  if (inPlace) return inPlace;
  try {
    return tensor.bytesSync();
  } catch (error) {
    if (error instanceof Error && (error as { code?: unknown }).code === "NOT_SYNC") return tensor.bytes();
    throw error;
  }
}

function plainBytes(data: ArrayBufferView, dtype: StoredDType, box: Box, where: string): Uint8Array {
  if (!ArrayBuffer.isView(data)) throw new OptError("BAD_ARGUMENT", where, "data must be a typed array.", "Or bytes.");
  const width = "BYTES_PER_ELEMENT" in data ? (data.BYTES_PER_ELEMENT as number) : 1;
  const kind = data.constructor.name;
  const held = kind.replace(/^(?:Big)?([FIU])[a-z]+(\d+)Array$/, "$1$2");
  const isOwn = width === 1 || held === dtype || (held === "U16" && /^B?F16$/.test(dtype));
  check(isOwn, "BAD_DTYPE", where, () => `data of ${dtype} cannot be a ${kind}.`, "Convert it.");
  const wanted = elementsIn(box) * bytesPerElement(dtype);
  check(
    data.byteLength === wanted,
    "BAD_SHAPE",
    where,
    () => `${dtype} [${box.size}] takes ${wanted} bytes, got ${data.byteLength}.`,
    "Fix the shape.",
  );
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
