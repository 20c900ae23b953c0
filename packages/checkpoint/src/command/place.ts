/** Where a path of the command line leads: to the disk, with `s3://bucket/` into a bucket, or to an address that is only read. */
import { check, OptError } from "@opt/core";
import { type Ledger, ledger } from "../ledger/ledger";
import { localFileSystem, outputOf } from "../platform/local";
import { isAddress } from "../remote/address";
import type { FileSystem } from "../stores/file-system";

export interface Place {
  readonly path: string;
  /** Undefined for addresses, whose store is found when they are opened. */
  readonly fileSystem: FileSystem | undefined;
}

const BUCKET = /^s3:\/\/([^/]+)\/?(.*)$/;

/** Credentials, region and endpoint come from the environment. @throws OptError BAD_ARGUMENT if they are missing */
export async function placeOf(path: string): Promise<Place> {
  const [, bucket, key] = BUCKET.exec(path) ?? [];
  if (bucket === undefined) return { path, fileSystem: isAddress(path) ? undefined : localFileSystem };
  const { s3FileSystem } = await import("../bucket/s3");
  return { path: key || ".", fileSystem: s3FileSystem({ bucket }) };
}

/** Where a command writes. @throws OptError BAD_ARGUMENT for an address */
export async function outputPlaceOf(path: string): Promise<{ readonly path: string; readonly fileSystem: FileSystem }> {
  const place = await placeOf(path);
  return { path: place.path, fileSystem: outputOf(place.path, place.fileSystem) };
}

/** Several files that make one checkpoint, in one bucket, or none of them in one. */
export async function placesOf(
  paths: readonly string[],
): Promise<{ readonly paths: string[]; readonly fileSystem: FileSystem | undefined }> {
  const buckets = new Set(paths.map((path) => BUCKET.exec(path)?.[1]));
  check(buckets.size <= 1, "BAD_ARGUMENT", "convert", () => "the files must lie in one store.", "Copy them together.");
  const places = await Promise.all(paths.map(placeOf));
  const isBucket = ![...buckets].includes(undefined);
  return { paths: places.map(({ path }) => path), fileSystem: isBucket ? places[0]?.fileSystem : undefined };
}

/** The ledger of a file or of a run. @throws OptError MISSING if it has no line */
export async function storedLedger(path: string): Promise<Ledger> {
  const { path: at, fileSystem } = await placeOf(path);
  const book = await ledger(at, { fileSystem });
  if (book.lines.length > 0) return book;
  throw new OptError("MISSING", path, "there is no ledger.", "Give the file that ledger() wrote, or its folder.");
}
