/** Opens whatever stands at a path: a checkpoint of ours, or of any system that has an importer. */

import { OptError } from "@opt/core";
import type { ImportOptions, TensorSource } from "../format/source";
import { findStep } from "../format/steps";
import { detect, lookAt, openForeign } from "../formats/registry";
import { fileSystemOf } from "../platform/local";
import { blobFileSystem } from "../stores/blob";
import { checkedPath, type FileSystem } from "../stores/file-system";
import { basename, dirname } from "../stores/path";
import { checkpointImporter, type NativeSource, openCheckpoint, readManifest } from "./native";

export interface OpenOptions extends ImportOptions {
  readonly fileSystem?: FileSystem;
}

/** For `checkOptions`. */
export const OPEN_OPTIONS = {
  step: "number",
  fileSystem: "any",
  maxHeaderBytes: "number",
  maxTensors: "number",
  maxUnpacked: "number",
  sourceLayout: "object",
} as const;

/** How often a step may be replaced under a reader's hands before it gives up. */
const TRIES = 5;

/** What to read: a path in `fileSystem`, or a file that a user has chosen. */
export type Place = string | Blob;

/** Throws BAD_ARGUMENT for what cannot be read from. */
export function checkedPlace(where: string, place: unknown): Place {
  return place instanceof Blob ? place : checkedPath(where, place);
}

/** Throws MISSING, UNSUPPORTED (a format nobody knows), and what the format's reader throws. */
export async function openSource(place: Place, options: OpenOptions = {}): Promise<TensorSource> {
  if (place instanceof Blob) {
    const name = (place as Partial<File>).name || "blob";
    return openSource(name, { ...options, fileSystem: blobFileSystem({ [name]: place }) });
  }
  const path = place;
  const fileSystem = fileSystemOf(options.fileSystem);
  checkedPath("openSource", path);
  try {
    const isOurs =
      checkpointImporter.recognises(await lookAt(path, fileSystem)) ||
      (options.step !== undefined && !(await detect(path, fileSystem)));
    return await (isOurs
      ? openCheckpoint(path, fileSystem, options.step, options)
      : openForeignStep(path, fileSystem, options));
  } catch (error) {
    // A step that is being replaced has another name for a moment.
    const step = /^step-(\d{8,15})$/.exec(basename(path))?.[1];
    if (step === undefined || !(error instanceof OptError) || error.code !== "MISSING") throw error;
    const aside = await findStep(fileSystem, dirname(path), Number(step)).catch(() => undefined);
    if (aside === undefined) throw error;
    return openCheckpoint(aside, fileSystem, undefined, options);
  }
}

async function openForeignStep(path: string, fileSystem: FileSystem, options: OpenOptions): Promise<TensorSource> {
  const source = await openForeign(path, fileSystem, options);
  if (options.step === undefined || source.step === options.step) return source;
  await source.close();
  const has = source.step === undefined ? "says no step" : `is of step ${source.step}`;
  throw new OptError("MISSING", path, `step ${options.step} is asked for, the checkpoint ${has}.`, "Leave step out.");
}

/** Opens, runs `body` and closes. What fails because the step was replaced or removed meanwhile is done again with what is there now. */
export async function useSource<T>(
  path: Place,
  options: OpenOptions,
  body: (source: TensorSource) => Promise<T>,
): Promise<T> {
  for (let tries = 1; ; tries++) {
    const source = await openSource(path, options).catch((error: OptError) => {
      // Its manifest, between looking at it and reading it.
      if (tries >= TRIES || (error.cause as NodeJS.ErrnoException)?.code !== "ESTALE") throw error;
    });
    if (!source) continue;
    try {
      return await body(source);
    } catch (error) {
      if (tries >= TRIES || !(await isReplaced(source, path, options))) throw error;
    } finally {
      await source.close();
    }
  }
}

async function isReplaced(source: TensorSource, path: Place, options: OpenOptions): Promise<boolean> {
  if (!isNative(source)) return false;
  const now = await openSource(path, options).catch(() => undefined);
  if (now === undefined) return false;
  await now.close();
  const [before, after] = [source, now].map((one) => (isNative(one) ? idOf(one) : undefined));
  return after !== undefined && before !== after;
}

export function isNative(source: TensorSource): source is NativeSource {
  return "manifest" in source;
}

/** Tells saves apart, also those of before they had names. */
function idOf({ manifest: { step, attempt, files } }: NativeSource): string {
  return JSON.stringify([step, attempt, files.map(({ crc32 }) => crc32)]);
}

/** Whether another save has taken the place of the one that `manifest` was read from. */
export async function hasNewManifest(fileSystem: FileSystem, folder: string, attempt?: string): Promise<boolean> {
  const now = await readManifest(fileSystem, folder).catch(() => undefined);
  return now !== undefined && now.attempt !== attempt;
}
