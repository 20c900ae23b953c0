import { OptError } from "@opt/core";
import type { Json } from "../../format/source";

/** A file's JSON object. Throws CORRUPT for anything else. */
export function parseJson(bytes: Uint8Array, path: string): { [key: string]: Json | undefined } {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    throw new OptError("CORRUPT", path, `JSON is needed, got ${(error as Error).message}.`, "Use an intact copy.");
  }
  if (isObject(value)) return value;
  throw new OptError("CORRUPT", path, "a JSON object is needed, got something else.", "Use an intact copy.");
}

export function isObject(value: unknown): value is { [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
