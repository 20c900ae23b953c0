/** Opens whatever stands at a path: a checkpoint of ours, or of any system that has a reader. */

import { check, checkOptions, OptError } from "@opt/core";
import type { ImportOptions, TensorSource } from "../format/source";
import type { Best } from "../format/steps";
import { lookAt, openForeign, readerOf } from "../formats/registry";
import { fileSystemOf } from "../platform/local";
import { isAddress, REMOTE_OPTIONS, type RemoteOptions } from "../remote/address";
import { blobFileSystem } from "../stores/blob";
import { checkedPath, type FileSystem } from "../stores/file-system";
import { isCheckpoint, type NativeSource, openCheckpoint } from "./native";

export interface OpenOptions extends ImportOptions, RemoteOptions {
  /** The step of a run that has the least number of this name among its plain values, or the greatest (`highest`), as `keep` chooses. */
  readonly best?: Best;
  readonly fileSystem?: FileSystem;
}

/** For `checkOptions`. */
export const OPEN_OPTIONS = {
  ...REMOTE_OPTIONS,
  step: "number",
  best: "object",
  fileSystem: "any",
  maxHeaderBytes: "number",
  maxObjects: "number",
  sourceLayout: "object",
} as const;

/** How often a step may be replaced while a reader reads it. Then the reader gives up. */
const TRIES = 20;

/**
 * What to read: a path in `fileSystem`, or a file that a user has chosen. Where no `fileSystem` is given, also an address:
 * `https://host/path` or `hf://owner/name[@revision][/path]`.
 */
export type Place = string | Blob;

/** @throws OptError BAD_ARGUMENT for what cannot be read from */
export function checkedPlace(where: string, place: unknown): Place {
  return place instanceof Blob ? place : checkedPath(where, place);
}

/** @throws OptError MISSING, UNSUPPORTED (a format nobody knows), and what the format's reader throws */
export async function openSource(place: Place, options: OpenOptions = {}): Promise<TensorSource> {
  return (await open(place, options)).source;
}

/** What is open, and the path and the store where it is. */
interface Opened<Options> {
  readonly source: TensorSource;
  readonly path: string;
  readonly options: Options;
}

async function open<Options extends OpenOptions>(place: Place, options: Options): Promise<Opened<Options>> {
  for (let tries = 1; ; tries++) {
    try {
      const { path, ...found } = await storeOf(place, options);
      const there = { ...options, ...found };
      return { source: await openNow(path, there), path, options: there };
    } catch (error) {
      if (tries >= TRIES || !isGone(error)) throw error;
    }
  }
}

async function storeOf(place: Place, options: OpenOptions): Promise<{ path: string; fileSystem?: FileSystem }> {
  if (place instanceof Blob) {
    const path = (place as Partial<File>).name || "blob";
    return { path, fileSystem: { ...blobFileSystem({ [path]: place }), isNear: true } };
  }
  const path = checkedPath("openSource", place);
  const { cache, cacheLimit, token } = options;
  const limit = () => `cacheLimit needs a cache, got ${cacheLimit}.`;
  check(cacheLimit === undefined || cache !== undefined, "BAD_ARGUMENT", path, limit, "Give cache: true, or a folder.");
  if (options.fileSystem !== undefined || !isAddress(path)) {
    if (token !== undefined) await checkThere(path, fileSystemOf(options.fileSystem));
    return { path };
  }
  const { openRemote } = await import("../remote/open");
  return openRemote(path, options);
}

/** Who gives a token means an address. A path that is there needs none, and takes no notice. */
async function checkThere(path: string, fileSystem: FileSystem): Promise<void> {
  const kind = await fileSystem.kind(path).catch(() => "unknown"); // the reader reports it
  const problem = () => "a token is for an address, and no file or folder is there.";
  check(kind !== undefined, "MISSING", path, problem, "Write hf://owner/name or https://host/path.");
}

export interface OpenFolderOptions extends RemoteOptions {
  readonly fileSystem?: FileSystem;
}

/** See operations.ts. */
export async function openFolder(
  path: string,
  options: OpenFolderOptions = {},
): Promise<{ readonly path: string; readonly fileSystem: FileSystem }> {
  checkOptions("openFolder", options, { ...REMOTE_OPTIONS, fileSystem: "any" });
  const found = await storeOf(checkedPath("openFolder", path), options);
  return { path: found.path, fileSystem: fileSystemOf(found.fileSystem ?? options.fileSystem) };
}

/** Whether a file was there when it was looked for, and not when it was opened or read. */
function isGone(error: unknown): boolean {
  const code = ((error as Error).cause as NodeJS.ErrnoException | undefined)?.code;
  return code === "ENOENT" || code === "ESTALE";
}

async function openNow(path: string, options: OpenOptions): Promise<TensorSource> {
  const fileSystem = fileSystemOf(options.fileSystem);
  const candidate = await lookAt(path, fileSystem);
  const { step, best } = options;
  if (best !== undefined) {
    checkOptions("best", best, { value: "string", highest: "boolean" });
    check(
      step === undefined,
      "BAD_ARGUMENT",
      path,
      () => `step ${step} and best must not be given both.`,
      "Leave one out.",
    );
  }
  const isNamed = step !== undefined || best !== undefined;
  if (isCheckpoint(candidate) || (isNamed && !readerOf(candidate))) return openCheckpoint(path, fileSystem, options);
  const problem = () => "best chooses among the steps of a run's folder, this is a checkpoint of another system.";
  check(best === undefined, "UNSUPPORTED", path, problem, "Leave best out.");
  return openForeignStep(path, fileSystem, options);
}

async function openForeignStep(path: string, fileSystem: FileSystem, options: OpenOptions): Promise<TensorSource> {
  const source = await openForeign(path, fileSystem, options);
  if (options.step === undefined || source.step === options.step) return source;
  await source.close();
  const has = source.step === undefined ? "says no step" : `is of step ${source.step}`;
  throw new OptError("MISSING", path, `step ${options.step} is asked for, the checkpoint ${has}.`, "Leave step out.");
}

/**
 * Opens, runs `body`, closes. Does it again if it fails, or `isSure` doubts its result, and the step was replaced meanwhile. `body` gets
 * the options and the path with the store that the place is in.
 */
export async function useSource<T, Options extends OpenOptions>(
  place: Place,
  options: Options,
  body: (source: TensorSource, options: Options, path: string) => Promise<T>,
  isSure: (result: T) => boolean = () => true,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    const { source, ...found } = await open(place, options);
    const isFinal = async () => tries >= TRIES || !(await isReplaced(source, place, options));
    try {
      const result = await body(source, found.options, found.path);
      if (isSure(result) || (await isFinal())) return result;
    } catch (error) {
      if (await isFinal()) throw error;
    } finally {
      await source.close();
    }
  }
}

async function isReplaced(source: TensorSource, place: Place, options: OpenOptions): Promise<boolean> {
  if (!isNative(source)) return false;
  const now = await openSource(place, options).catch(() => undefined);
  await now?.close();
  return now !== undefined && isNative(now) && idOf(now) !== idOf(source);
}

export function isNative(source: TensorSource): source is NativeSource {
  return "manifest" in source;
}

/** Tells apart saves, also those without a name, and the places of one save. */
function idOf({ path, manifest: { step, attempt, files } }: NativeSource): string {
  return JSON.stringify([path, step, attempt, files.map(({ crc32 }) => crc32)]);
}
