import { OptError } from "@opt/core";
import type { Json } from "../../format/source";

const DEEPEST = 500;

/** A file's JSON object. Throws CORRUPT for anything else, and for what nests so deep that walking it would overflow the stack. */
export function parseJson(bytes: Uint8Array, path: string): { [key: string]: Json | undefined } {
  if (depthOf(bytes) > DEEPEST) {
    throw new OptError("CORRUPT", path, `JSON nests deeper than ${DEEPEST}.`, "The file is damaged, or hostile.");
  }
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

/** How deep brackets nest, texts left out. */
function depthOf(bytes: Uint8Array): number {
  let [depth, deepest, inText] = [0, 0, false];
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    if (inText) {
      if (byte === 0x5c) i++;
      else if (byte === 0x22) inText = false;
    } else if (byte === 0x22) inText = true;
    else if (byte === 0x5b || byte === 0x7b) deepest = Math.max(deepest, ++depth);
    else if (byte === 0x5d || byte === 0x7d) depth--;
  }
  return deepest;
}
