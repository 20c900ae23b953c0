/** The manifest: which boxes of which tensors lie where, with every checksum, and its own at the end. */
import { OptError } from "@opt/core";
import { type Box, elementsIn, fits } from "../layout/box";
import type { Mesh } from "../layout/layout";
import { crc32, crcText } from "./crc32";
import { bytesPerElement, isStoredDType, type StoredDType } from "./dtype";
import { problemOfJson } from "./json-text";
import { elementCount } from "./safetensors";
import type { FileRecord, WrittenBox } from "./shard";
import type { Json, Role } from "./source";

export const MANIFEST_FILE = "manifest.json";
export const FORMAT_NAME = "opt-checkpoint";
export const FORMAT_VERSION = 1;

export interface ManifestBox extends Box, WrittenBox {
  /** Index into `files`. */
  readonly file: number;
}

export interface ManifestTensor {
  readonly name: string;
  readonly dtype: StoredDType;
  readonly shape: readonly number[];
  readonly role: Role;
  readonly follows?: string;
  readonly boxes: readonly ManifestBox[];
}

export interface Manifest {
  readonly step: number;
  /** The name of the attempt that wrote it, which no other attempt has; absent in steps of before there were names. */
  readonly attempt?: string;
  readonly world: number;
  readonly mesh: Mesh;
  readonly files: readonly FileRecord[];
  readonly tensors: readonly ManifestTensor[];
  readonly values: { readonly [key: string]: Json };
}

/** A manifest is refused above this: it is read into memory whole. */
export const MAX_MANIFEST_BYTES = 400 << 20;

/** Values may be nested to 100. */
const DEEPEST = 110;

function tailOf(body: Uint8Array): string {
  return `,\n"crc32":"${crcText(crc32(body))}"}\n`;
}

const TAIL_LENGTH = tailOf(new Uint8Array(0)).length;

/** One tensor, one file a line, so that people and diff tools can read it; the last line holds the CRC-32 of all before it. */
export function encodeManifest(manifest: Manifest): Uint8Array {
  const { step, attempt, world, mesh, files, tensors, values } = manifest;
  const lines = (list: readonly unknown[]) =>
    list.length === 0 ? "[]" : `[\n${list.map((item) => JSON.stringify(item)).join(",\n")}\n]`;
  const members = [
    `{"format":${JSON.stringify(FORMAT_NAME)}`,
    `"version":${FORMAT_VERSION}`,
    `"step":${step}`,
    ...(attempt === undefined ? [] : [`"attempt":${JSON.stringify(attempt)}`]),
    `"world":${world}`,
    `"mesh":${JSON.stringify(mesh)}`,
    `"files":${lines(files.map((file) => ({ ...file, headerCrc32: crcText(file.headerCrc32), crc32: crcText(file.crc32) })))}`,
    `"tensors":${lines(tensors.map((tensor) => ({ ...tensor, boxes: tensor.boxes.map((box) => ({ ...box, crc32: crcText(box.crc32) })) })))}`,
    `"values":${JSON.stringify(values)}`,
  ];
  const body = new TextEncoder().encode(members.join(",\n"));
  const bytes = new Uint8Array(body.length + TAIL_LENGTH);
  bytes.set(body);
  bytes.set(new TextEncoder().encode(tailOf(body)), body.length);
  return bytes;
}

/** Reads and checks a manifest. Throws CORRUPT (damaged), UNSUPPORTED (a newer version), REFUSED (a file name that leaves the folder). */
export function parseManifest(bytes: Uint8Array, where: string): Manifest {
  const fail = (problem: string): never => {
    throw new OptError("CORRUPT", where, `manifest: ${problem}`, "It is damaged: restore it, or use another step.");
  };
  const body = bytes.subarray(0, Math.max(0, bytes.length - TAIL_LENGTH));
  const tail = new TextDecoder("latin1").decode(bytes.subarray(body.length));
  if (tail !== tailOf(body)) fail("its checksum does not match its bytes.");
  let raw: Record<string, unknown>;
  try {
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
    const problem = problemOfJson(text, DEEPEST);
    if (problem !== undefined) throw new Error(problem);
    raw = JSON.parse(text);
  } catch (error) {
    return fail(`must be JSON, got ${error instanceof Error ? error.message : error}.`);
  }
  if (raw.format !== FORMAT_NAME) fail(`format must be ${FORMAT_NAME}, got ${JSON.stringify(raw.format)}.`);
  if (raw.version !== FORMAT_VERSION) {
    throw new OptError(
      "UNSUPPORTED",
      where,
      `version ${raw.version} is not known, only ${FORMAT_VERSION}.`,
      "Update @opt/checkpoint.",
    );
  }
  return new ManifestChecker(where, fail).check(raw);
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isCounts = (value: unknown): value is number[] => Array.isArray(value) && value.every(isCount);
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A checksum protects against accidents, not against malice: everything is checked before anything is believed. */
class ManifestChecker {
  readonly #where: string;
  readonly #fail: (problem: string) => never;

  constructor(where: string, fail: (problem: string) => never) {
    this.#where = where;
    this.#fail = fail;
  }

  check(raw: Record<string, unknown>): Manifest {
    const { step, attempt, world, mesh, files, tensors, values } = raw;
    if (!isCount(step)) this.#fail(`step must be a whole number, got ${JSON.stringify(step)}.`);
    if (attempt !== undefined && typeof attempt !== "string") this.#fail("attempt must be a name.");
    if (!isCount(world) || world < 1) this.#fail(`world must be positive, got ${JSON.stringify(world)}.`);
    if (!isObject(mesh) || !isCounts(mesh.shape) || !Array.isArray(mesh.axes))
      this.#fail("mesh must have a shape and axes.");
    if (!Array.isArray(files) || !Array.isArray(tensors)) this.#fail("files and tensors must be lists.");
    if (!isObject(values)) this.#fail("values must be an object.");
    const checkedFiles = (files as unknown[]).map((file) => this.#file(file));
    if (new Set(checkedFiles.map(({ name }) => name)).size < checkedFiles.length) this.#fail("a file occurs twice.");
    const checkedTensors = (tensors as unknown[]).map((tensor) => this.#tensor(tensor, checkedFiles));
    if (new Set(checkedTensors.map(({ name }) => name)).size < checkedTensors.length)
      this.#fail("a tensor occurs twice.");
    return {
      step: step as number,
      ...(attempt === undefined ? {} : { attempt: attempt as string }),
      world: world as number,
      mesh: mesh as unknown as Mesh,
      files: checkedFiles,
      tensors: checkedTensors,
      values: values as Manifest["values"],
    };
  }

  #crc(value: unknown, what: string): number {
    if (typeof value !== "string" || !/^[0-9a-f]{8}$/.test(value))
      this.#fail(`${what}: crc32 must be eight hexadecimal digits.`);
    return Number.parseInt(value as string, 16);
  }

  #file(raw: unknown): FileRecord {
    if (!isObject(raw) || typeof raw.name !== "string") return this.#fail("a file has no name.");
    const { name, byteLength, headerLength, sha256 } = raw;
    if (!/^[A-Za-z0-9_][A-Za-z0-9._-]*$/.test(name as string)) {
      const advice = "Do not use this checkpoint: somebody may have tampered with it.";
      throw new OptError("REFUSED", this.#where, `file name ${JSON.stringify(name)} could leave the folder.`, advice);
    }
    if (!isCount(byteLength) || !isCount(headerLength) || headerLength > byteLength)
      this.#fail(`file ${name}: bad lengths.`);
    if (sha256 !== undefined && (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)))
      this.#fail(`file ${name}: bad sha256.`);
    const headerCrc32 = this.#crc(raw.headerCrc32, `file ${name}`);
    return { ...(raw as unknown as FileRecord), headerCrc32, crc32: this.#crc(raw.crc32, `file ${name}`) };
  }

  #tensor(raw: unknown, files: readonly FileRecord[]): ManifestTensor {
    if (!isObject(raw) || typeof raw.name !== "string") return this.#fail("a tensor has no name.");
    const { name, dtype, shape, role, follows, boxes } = raw;
    const title = `tensor ${JSON.stringify(name)}`;
    if (!isStoredDType(dtype)) return this.#fail(`${title}: unknown dtype ${JSON.stringify(dtype)}.`);
    if (!isCounts(shape) || elementCount(shape) === undefined) return this.#fail(`${title}: bad shape.`);
    if (role !== "param" && role !== "state" && role !== "scalar") return this.#fail(`${title}: bad role.`);
    if (follows !== undefined && typeof follows !== "string") return this.#fail(`${title}: bad follows.`);
    if (!Array.isArray(boxes)) return this.#fail(`${title}: boxes must be a list.`);
    const checked = boxes.map((box) => this.#box(box, title, dtype, shape, files));
    return { name: name as string, dtype, shape, role, ...(follows === undefined ? {} : { follows }), boxes: checked };
  }

  #box(
    raw: unknown,
    title: string,
    dtype: StoredDType,
    shape: readonly number[],
    files: readonly FileRecord[],
  ): ManifestBox {
    if (!isObject(raw) || !isCounts(raw.offset) || !isCounts(raw.size))
      return this.#fail(`${title}: a box has no offset or size.`);
    const box = raw as unknown as ManifestBox;
    if (!fits(box, shape)) this.#fail(`${title}: a box leaves the tensor.`);
    const file = isCount(raw.file) ? files[raw.file] : undefined;
    if (!file) return this.#fail(`${title}: a box lies in no file.`);
    if (
      !isCount(raw.byteOffset) ||
      !isCount(raw.byteLength) ||
      raw.byteLength !== elementsIn(box) * bytesPerElement(dtype)
    ) {
      this.#fail(`${title}: a box has a wrong length.`);
    }
    if (box.byteOffset < file.headerLength || box.byteOffset + box.byteLength > file.byteLength) {
      this.#fail(`${title}: a box leaves ${file.name}.`);
    }
    return { ...box, crc32: this.#crc(raw.crc32, title) };
  }
}
