/** The manifest: which boxes of which tensors lie where, with every checksum, and its own at the end. */
import { check, OptError } from "@opt/core";
import { type Box, elementCount, elementsIn, fits } from "../layout/box";
import { isCount } from "../layout/counts";
import type { Mesh } from "../layout/layout";
import type { FileSystem } from "../stores/file-system";
import { join } from "../stores/path";
import { crc32, crcText } from "./crc32";
import { bytesPerElement, isStoredDType, type StoredDType } from "./dtype";
import { problemOfJson } from "./json/json-text";
import { jsonText, listText } from "./json/plain";
import type { FileRecord } from "./shard";
import { isObject, type Json, type ReadLimits, type Role, readWhole } from "./source";

export const MANIFEST_FILE = "manifest.json";
const FORMAT_NAME = "opt-checkpoint";
const FORMAT_VERSION = 1;

export interface ManifestBox extends Box {
  readonly file: number;
  readonly byteOffset: number;
  readonly byteLength: number;
  readonly crc32: number;
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

/** The largest manifest: it is read into memory whole. */
const MAX_MANIFEST_BYTES = 400 << 20;

/** Values may be nested to 100. */
const DEEPEST = 110;

function tailOf(crc: number): string {
  return `,\n"crc32":"${crcText(crc)}"}\n`;
}

const TAIL_LENGTH = tailOf(0).length;

/** One tensor, one file a line, so that people and diff tools can read it; the last line holds the CRC-32 of all before it. */
export function encodeManifest(manifest: Manifest): Uint8Array {
  const body = new TextEncoder().encode([...linesOf(manifest)].join(""));
  const bytes = new Uint8Array(body.length + TAIL_LENGTH);
  bytes.set(body);
  new TextEncoder().encodeInto(tailOf(crc32(body)), bytes.subarray(body.length));
  return bytes;
}

function* linesOf({ step, attempt, world, mesh, files, tensors, values }: Manifest): Generator<string> {
  yield `{"format":${JSON.stringify(FORMAT_NAME)},\n"version":${FORMAT_VERSION},\n"step":${step},\n`;
  if (attempt !== undefined) yield `"attempt":${JSON.stringify(attempt)},\n`;
  yield `"world":${world},\n"mesh":${JSON.stringify(mesh)},\n"files":`;
  yield* listed(files, (file) =>
    JSON.stringify({ ...file, headerCrc32: crcText(file.headerCrc32), crc32: crcText(file.crc32) }),
  );
  yield `,\n"tensors":`;
  yield* listed(tensors, lineOf);
  yield `,\n"values":${jsonText(values)}`;
}

function* listed<T>(list: readonly T[], text: (item: T) => string): Generator<string> {
  if (list.length === 0) return yield "[]";
  yield "[\n";
  for (const [i, item] of list.entries()) yield i === 0 ? text(item) : `,\n${text(item)}`;
  yield "\n]";
}

function lineOf({ name, dtype, shape, role, follows, boxes }: ManifestTensor): string {
  const title = `{"name":${JSON.stringify(name)},"dtype":"${dtype}","shape":${listText(shape)},"role":"${role}"`;
  let line = `${title}${follows === undefined ? "" : `,"follows":${JSON.stringify(follows)}`},"boxes":[`;
  for (const [i, { offset, size, file, byteOffset, byteLength, crc32 }] of boxes.entries())
    line += `${i > 0 ? "," : ""}{"offset":${listText(offset)},"size":${listText(size)},"file":${file},"byteOffset":${byteOffset},"byteLength":${byteLength},"crc32":"${crcText(crc32)}"}`;
  return `${line}]}`;
}

/** The manifest of a step. @throws OptError MISSING, CORRUPT, UNSUPPORTED, IO, REFUSED for one that is too long */
export async function readManifest(fileSystem: FileSystem, step: string, limits: ReadLimits = {}): Promise<Manifest> {
  const path = join(step, MANIFEST_FILE);
  return parseManifest(await readWhole(fileSystem, path, limits.maxHeaderBytes ?? MAX_MANIFEST_BYTES), path);
}

/**
 * Reads and checks a manifest.
 *
 * @throws OptError CORRUPT (damaged), UNSUPPORTED (a newer version), REFUSED (a file name that leaves the folder)
 */
export function parseManifest(bytes: Uint8Array, where: string): Manifest {
  const fail = (problem: string): never => {
    throw new OptError("CORRUPT", where, `manifest: ${problem}`, "It is damaged: restore it, or use another step.");
  };
  const body = bytes.subarray(0, Math.max(0, bytes.length - TAIL_LENGTH));
  const tail = new TextDecoder("latin1").decode(bytes.subarray(body.length));
  if (tail !== tailOf(crc32(body))) fail("its checksum does not match its bytes.");
  const raw = parsed(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes), fail);
  if (raw.format !== FORMAT_NAME) fail(`format must be ${FORMAT_NAME}, got ${JSON.stringify(raw.format)}.`);
  check(
    raw.version === FORMAT_VERSION,
    "UNSUPPORTED",
    where,
    () => `version ${raw.version} is not known, only ${FORMAT_VERSION}.`,
    "Update @opt/checkpoint.",
  );
  return new ManifestChecker(where, fail).check(raw);
}

function parsed(text: string, fail: (problem: string) => never): Record<string, unknown> {
  try {
    const raw = JSON.parse(text);
    // What is written back as it was read, but for the ends of lines, has no key twice: the quicker proof.
    const problem = JSON.stringify(raw) === text.replaceAll("\n", "") ? undefined : problemOfJson(text, DEEPEST);
    if (problem !== undefined) throw new Error(problem);
    return raw;
  } catch (error) {
    return fail(`must be JSON, got ${error instanceof Error ? error.message : error}.`);
  }
}

const isCounts = (value: unknown): value is number[] => Array.isArray(value) && value.every(isCount);

function alike(list: readonly number[], before: readonly number[] | undefined): readonly number[] {
  return before?.length === list.length && list.every((value, i) => value === before[i]) ? before : list;
}

/** A checksum protects against accidents, not against malice: everything is checked before anything is believed. */
class ManifestChecker {
  constructor(
    private readonly where: string,
    private readonly fail: (problem: string) => never,
  ) {}

  check({ step, attempt, world, mesh, files, tensors, values }: Record<string, unknown>): Manifest {
    if (!isCount(step)) this.fail(`step must be a whole number, got ${JSON.stringify(step)}.`);
    if (attempt !== undefined && typeof attempt !== "string") this.fail("attempt must be a name.");
    if (!isCount(world) || world < 1) this.fail(`world must be positive, got ${JSON.stringify(world)}.`);
    if (!isObject(mesh) || !isCounts(mesh.shape) || !Array.isArray(mesh.axes))
      this.fail("mesh must have a shape and axes.");
    if (!Array.isArray(files)) this.fail("files must be a list.");
    if (!Array.isArray(tensors)) this.fail("tensors must be a list.");
    if (!isObject(values)) this.fail("values must be an object.");
    const checkedFiles = (files as unknown[]).map((file) => this.#file(file));
    if (new Set(checkedFiles.map(({ name }) => name)).size < checkedFiles.length) this.fail("a file occurs twice.");
    const checkedTensors: ManifestTensor[] = [];
    for (const tensor of tensors as unknown[])
      checkedTensors.push(this.#tensor(tensor, checkedFiles, checkedTensors.at(-1)));
    if (new Set(checkedTensors.map(({ name }) => name)).size < checkedTensors.length)
      this.fail("a tensor occurs twice.");
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
      this.fail(`${what}: crc32 must be eight hexadecimal digits.`);
    return Number.parseInt(value as string, 16);
  }

  #file(raw: unknown): FileRecord {
    if (!isObject(raw) || typeof raw.name !== "string") return this.fail("a file has no name.");
    const { name, byteLength, headerLength, sha256 } = raw;
    if (!/^[A-Za-z0-9_][A-Za-z0-9._-]*$/.test(name as string)) {
      const advice = "Somebody may have tampered with it.";
      throw new OptError("REFUSED", this.where, `file name ${JSON.stringify(name)} could leave the folder.`, advice);
    }
    if (!isCount(byteLength) || !isCount(headerLength) || headerLength > byteLength)
      this.fail(`file ${name}: bad lengths.`);
    if (sha256 !== undefined && (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)))
      this.fail(`file ${name}: bad sha256.`);
    const headerCrc32 = this.#crc(raw.headerCrc32, `file ${name}`);
    return { ...(raw as unknown as FileRecord), headerCrc32, crc32: this.#crc(raw.crc32, `file ${name}`) };
  }

  /** `before`: most tensors lie as the one before them does, and share its lists of numbers. */
  #tensor(raw: unknown, files: readonly FileRecord[], before: ManifestTensor | undefined): ManifestTensor {
    if (!isObject(raw) || typeof raw.name !== "string") return this.fail("a tensor has no name.");
    const { name, dtype, shape, role, follows, boxes } = raw;
    const title = `tensor ${JSON.stringify(name)}`;
    if (!isStoredDType(dtype)) return this.fail(`${title}: unknown dtype ${JSON.stringify(dtype)}.`);
    if (!isCounts(shape) || elementCount(shape) === undefined) return this.fail(`${title}: bad shape.`);
    if (role !== "param" && role !== "state" && role !== "scalar") return this.fail(`${title}: bad role.`);
    if (follows !== undefined && typeof follows !== "string") return this.fail(`${title}: bad follows.`);
    if (!Array.isArray(boxes)) return this.fail(`${title}: boxes must be a list.`);
    const checked = boxes.map((box, i) => this.#box(box, title, dtype, shape, files, before?.boxes[i]));
    return {
      name: name as string,
      dtype,
      shape: alike(shape, before?.shape),
      role,
      ...(follows === undefined ? {} : { follows }),
      boxes: checked,
    };
  }

  #box(
    raw: unknown,
    title: string,
    dtype: StoredDType,
    shape: readonly number[],
    files: readonly FileRecord[],
    before: ManifestBox | undefined,
  ): ManifestBox {
    if (!isObject(raw) || !isCounts(raw.offset) || !isCounts(raw.size))
      return this.fail(`${title}: a box has no offset or size.`);
    const box = raw as unknown as ManifestBox;
    if (!fits(box, shape)) this.fail(`${title}: a box leaves the tensor.`);
    const file = isCount(raw.file) ? files[raw.file] : undefined;
    if (!file) return this.fail(`${title}: a box lies in no file.`);
    if (
      !isCount(raw.byteOffset) ||
      !isCount(raw.byteLength) ||
      raw.byteLength !== elementsIn(box) * bytesPerElement(dtype)
    ) {
      this.fail(`${title}: a box has a wrong length.`);
    }
    if (box.byteOffset < file.headerLength || box.byteOffset + box.byteLength > file.byteLength) {
      this.fail(`${title}: a box leaves ${file.name}.`);
    }
    const { file: index, byteOffset, byteLength } = box;
    const [offset, size] = [alike(box.offset, before?.offset), alike(box.size, before?.size)];
    return { offset, size, file: index, byteOffset, byteLength, crc32: this.#crc(raw.crc32, title) };
  }
}
