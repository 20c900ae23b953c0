/** The manifest: which boxes of which tensors lie where, with every checksum, and its own at the end. */
import { check, OptError } from "@opt/core";
import { elementCount, elementsIn, fits } from "../layout/box";
import { isCount } from "../layout/counts";
import type { Mesh } from "../layout/layout";
import type { FileSystem } from "../stores/file-system";
import { join } from "../stores/path";
import { crc32, crcText } from "./crc32";
import { type Division, MOST_BOXES, parseDivision } from "./division";
import { bytesPerElement, isStoredDType, type StoredDType } from "./dtype";
import { FileIndex } from "./file-index";
import { problemOfJson } from "./json/json-text";
import { jsonText, listText } from "./json/plain";
import type { FileRecord, ManifestBox, ManifestTensor } from "./shard";
import { isObject, type Json, type ReadLimits, readWhole } from "./source";

export const MANIFEST_FILE = "manifest.json";
const FORMAT_NAME = "opt-checkpoint";
const FORMAT_VERSION = 1;

export interface Manifest {
  readonly step: number;
  /** The name of the attempt that wrote it, which no other attempt has; absent in steps of before there were names. */
  readonly attempt?: string;
  readonly world: number;
  readonly mesh: Mesh;
  readonly files: readonly FileRecord[];
  readonly tensors: readonly ManifestTensor[];
  readonly values: { readonly [key: string]: Json };
  /** Where the boxes of `tensors` are, if the manifest does not list each. */
  readonly index?: FileIndex;
  /** The file that has the checksums of boxes, if the manifest does not list them. */
  readonly checksums?: string;
}

export const manifestLimits = {
  /** So many boxes are listed, each on its own, so that people and diff tools can read them. Of more it says how tensors are cut. */
  listed: 1 << 17,
  /** It is read into memory whole. */
  bytes: 400 << 20,
};

/** Values may be nested to 100. */
const DEEPEST = 110;

function tailOf(crc: number): string {
  return `,\n"crc32":"${crcText(crc)}"}\n`;
}

const TAIL_LENGTH = tailOf(0).length;

/** The largest manifest, so that its reader takes it. */
function checkReadable(byteLength: number, boxes: number): void {
  check(
    byteLength <= manifestLimits.bytes && boxes <= MOST_BOXES,
    "BAD_ARGUMENT",
    "saveCheckpoint",
    () =>
      `a manifest must have at most ${manifestLimits.bytes} bytes and ${MOST_BOXES} different boxes, got ${byteLength} and ${boxes}.`,
    "Give a layout that splits tensors along mesh axes, or save with fewer ranks.",
  );
}

/**
 * One tensor, one file a line, so that people and diff tools can read it; the last line holds the CRC-32 of all before it.
 *
 * @throws OptError BAD_ARGUMENT for one that is too long for its reader
 */
export function encodeManifest(manifest: Manifest): Uint8Array {
  const body = new TextEncoder().encode([...linesOf(manifest)].join(""));
  checkReadable(body.length + TAIL_LENGTH, manifest.checksums === undefined ? 0 : boxesOf(divisionsOf(manifest)));
  const bytes = new Uint8Array(body.length + TAIL_LENGTH);
  bytes.set(body);
  new TextEncoder().encodeInto(tailOf(crc32(body)), bytes.subarray(body.length));
  return bytes;
}

function divisionsOf({ index }: Manifest): Division[] {
  return [...new Set(index!.tensors.map(({ division }) => division))];
}

/** How many boxes divisions have together. */
function boxesOf(divisions: readonly Division[]): number {
  return divisions.reduce((sum, { files }) => sum + files.length, 0);
}

function* linesOf(manifest: Manifest): Generator<string> {
  const { step, attempt, world, mesh, files, tensors, values, index, checksums } = manifest;
  yield `{"format":${JSON.stringify(FORMAT_NAME)},\n"version":${FORMAT_VERSION},\n"step":${step},\n`;
  if (attempt !== undefined) yield `"attempt":${JSON.stringify(attempt)},\n`;
  yield `"world":${world},\n"mesh":${JSON.stringify(mesh)},\n"files":`;
  const isDivided = index !== undefined && checksums !== undefined;
  yield* listed(isDivided ? files.map((_, file) => index.recordOf(file)) : files, fileText);
  if (isDivided) {
    const divisions = new Map(divisionsOf(manifest).map((division, i) => [division, i]));
    yield `,\n"checksums":${JSON.stringify(checksums)},\n"divisions":`;
    yield* listed([...divisions.keys()], (division) => division.text());
    yield `,\n"tensors":`;
    yield* listed(index.tensors, (tensor) => `${titleOf(tensor)},"division":${divisions.get(tensor.division)}}`);
  } else {
    yield `,\n"tensors":`;
    yield* listed(tensors, (tensor) => `${titleOf(tensor)},"boxes":[${boxesText(tensor.boxes)}]}`);
  }
  yield `,\n"values":${jsonText(values)}`;
}

function fileText({ boxesCrc32, ...file }: FileRecord): string {
  const own = boxesCrc32 === undefined ? {} : { boxesCrc32: crcText(boxesCrc32) };
  return JSON.stringify({ ...file, headerCrc32: crcText(file.headerCrc32), crc32: crcText(file.crc32), ...own });
}

function* listed<T>(list: readonly T[], text: (item: T) => string): Generator<string> {
  if (list.length === 0) return yield "[]";
  yield "[\n";
  for (const [i, item] of list.entries()) yield i === 0 ? text(item) : `,\n${text(item)}`;
  yield "\n]";
}

function titleOf({ name, dtype, shape, role, follows }: ManifestTensor): string {
  const title = `{"name":${JSON.stringify(name)},"dtype":"${dtype}","shape":${listText(shape)},"role":"${role}"`;
  return `${title}${follows === undefined ? "" : `,"follows":${JSON.stringify(follows)}`}`;
}

function boxesText(boxes: readonly ManifestBox[]): string {
  let text = "";
  for (const [i, { offset, size, file, byteOffset, byteLength, crc32 }] of boxes.entries())
    text += `${i > 0 ? "," : ""}{"offset":${listText(offset)},"size":${listText(size)},"file":${file},"byteOffset":${byteOffset},"byteLength":${byteLength},"crc32":"${crcText(crc32)}"}`;
  return text;
}

/** The manifest of a step. @throws OptError MISSING, CORRUPT, UNSUPPORTED, IO, REFUSED for one that is too long */
export async function readManifest(fileSystem: FileSystem, step: string, limits: ReadLimits = {}): Promise<Manifest> {
  const path = join(step, MANIFEST_FILE);
  return parseManifest(await readWhole(fileSystem, path, limits.maxHeaderBytes ?? manifestLimits.bytes), path);
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

  check(raw: Record<string, unknown>): Manifest {
    const { step, attempt, world, mesh, files, tensors, values, checksums, divisions } = raw;
    if (!isCount(step)) this.fail(`step must be a whole number, got ${JSON.stringify(step)}.`);
    if (attempt !== undefined && typeof attempt !== "string") this.fail("attempt must be a name.");
    if (!isCount(world) || world < 1) this.fail(`world must be positive, got ${JSON.stringify(world)}.`);
    if (!isObject(mesh) || !isCounts(mesh.shape) || !Array.isArray(mesh.axes))
      this.fail("mesh must have a shape and axes.");
    if (!Array.isArray(files)) this.fail("files must be a list.");
    if (!Array.isArray(tensors)) this.fail("tensors must be a list.");
    if (!isObject(values)) this.fail("values must be an object.");
    const isDivided = checksums !== undefined;
    if (isDivided) this.#name(checksums);
    const checkedFiles = (files as unknown[]).map((file) => this.#file(file, isDivided));
    if (new Set(checkedFiles.map(({ name }) => name)).size < checkedFiles.length) this.fail("a file occurs twice.");
    const index = isDivided ? this.#index(tensors as unknown[], divisions, checkedFiles) : undefined;
    const checkedTensors = index?.tensors ?? this.#listed(tensors as unknown[], checkedFiles);
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
      ...(index ? { index, checksums: checksums as string } : {}),
    };
  }

  #listed(tensors: readonly unknown[], files: readonly FileRecord[]): ManifestTensor[] {
    const checked: ManifestTensor[] = [];
    for (const raw of tensors) {
      const described = this.#described(raw);
      checked.push({ ...described, ...this.#boxes(raw as Record<string, unknown>, described, files, checked.at(-1)) });
    }
    return checked;
  }

  #index(tensors: readonly unknown[], divisions: unknown, files: readonly FileRecord[]): FileIndex {
    if (!Array.isArray(divisions)) this.fail("divisions must be a list.");
    let boxes = 0;
    const checked = (divisions as unknown[]).map((raw) => {
      const division = parseDivision(raw, files.length, this.fail);
      boxes += division.files.length;
      if (boxes > MOST_BOXES) this.fail(`divisions may have ${MOST_BOXES} boxes.`);
      return division;
    });
    const shapes = new Map<Division, string>();
    const located = tensors.map((raw) => {
      const described = this.#described(raw);
      const division = checked[(raw as { division: number }).division];
      if (!division) return this.fail(`tensor ${JSON.stringify(described.name)}: unknown division.`);
      const shape = shapes.get(division) ?? `${described.shape}`;
      if (shape !== `${described.shape}`) this.fail("tensors of one division must have one shape.");
      shapes.set(division, shape);
      return { ...described, division };
    });
    return new FileIndex(files, located);
  }

  #crc(value: unknown, what: string): number {
    if (typeof value !== "string" || !/^[0-9a-f]{8}$/.test(value))
      this.fail(`${what}: crc32 must be eight hexadecimal digits.`);
    return Number.parseInt(value as string, 16);
  }

  #name(name: unknown): void {
    if (typeof name === "string" && /^[A-Za-z0-9_][A-Za-z0-9._-]*$/.test(name)) return;
    const advice = "Somebody may have tampered with it.";
    throw new OptError("REFUSED", this.where, `file name ${JSON.stringify(name)} could leave the folder.`, advice);
  }

  /** `hasBoxes`: it says how many boxes it has. */
  #file(raw: unknown, hasBoxes: boolean): FileRecord {
    if (!isObject(raw) || typeof raw.name !== "string") return this.fail("a file has no name.");
    const { name, byteLength, headerLength, sha256, boxes } = raw;
    this.#name(name);
    if (!isCount(byteLength) || !isCount(headerLength) || headerLength > byteLength)
      this.fail(`file ${name}: bad lengths.`);
    if (sha256 !== undefined && (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)))
      this.fail(`file ${name}: bad sha256.`);
    if (hasBoxes && !isCount(boxes)) this.fail(`file ${name}: bad number of boxes.`);
    const title = `file ${name}`;
    const [headerCrc32, crc32] = [this.#crc(raw.headerCrc32, title), this.#crc(raw.crc32, title)];
    const own = hasBoxes ? { boxesCrc32: this.#crc(raw.boxesCrc32, title) } : {};
    return { ...(raw as unknown as FileRecord), headerCrc32, crc32, ...own };
  }

  /** What is said of a tensor but its boxes. */
  #described(raw: unknown): Omit<ManifestTensor, "boxes"> {
    if (!isObject(raw) || typeof raw.name !== "string") return this.fail("a tensor has no name.");
    const { name, dtype, shape, role, follows } = raw;
    const title = `tensor ${JSON.stringify(name)}`;
    if (!isStoredDType(dtype)) return this.fail(`${title}: unknown dtype ${JSON.stringify(dtype)}.`);
    if (!isCounts(shape) || elementCount(shape) === undefined) return this.fail(`${title}: bad shape.`);
    if (role !== "param" && role !== "state" && role !== "scalar") return this.fail(`${title}: bad role.`);
    if (follows !== undefined && typeof follows !== "string") return this.fail(`${title}: bad follows.`);
    return { name: name as string, dtype, shape, role, ...(follows === undefined ? {} : { follows }) };
  }

  /** `before`: most tensors lie as the one before them does, and share its lists of numbers. */
  #boxes(
    { boxes }: Record<string, unknown>,
    { name, dtype, shape }: Omit<ManifestTensor, "boxes">,
    files: readonly FileRecord[],
    before: ManifestTensor | undefined,
  ): Pick<ManifestTensor, "shape" | "boxes"> {
    const title = `tensor ${JSON.stringify(name)}`;
    if (!Array.isArray(boxes)) return this.fail(`${title}: boxes must be a list.`);
    const checked = boxes.map((box, i) => this.#box(box, title, dtype, shape, files, before?.boxes[i]));
    return { shape: alike(shape, before?.shape), boxes: checked };
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
