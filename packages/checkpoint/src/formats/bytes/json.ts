import { problemOfJson } from "../../format/json/json-text";
import { isObject, type Json } from "../../format/source";

import { corrupt } from "./errors";

export { isObject } from "../../format/source";

/** Nobody writes more, and whoever nests without end wants to fill the memory or the stack. */
const DEEPEST = 500;

/** Python writes NaN, Infinity and -Infinity, which are no JSON: as texts they are. */
function quotedNumbers(text: string): string {
  return text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|-?\b(?:NaN|Infinity)\b/g, (found) =>
    found.startsWith('"') ? found : `"${found}"`,
  );
}

/** A file's JSON object, also as Python writes it: what is no finite number is a text. @throws OptError CORRUPT for anything else */
export function parseJson(bytes: Uint8Array, path: string): { [key: string]: Json | undefined } {
  let value: unknown;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    const problem = problemOfJson(text, DEEPEST);
    if (problem !== undefined) throw new Error(problem);
    value = JSON.parse(/NaN|Infinity/.test(text) ? quotedNumbers(text) : text);
  } catch (error) {
    throw corrupt(path, `JSON is needed, got ${(error as Error).message}`);
  }
  if (isObject(value)) return value;
  throw corrupt(path, "a JSON object is needed, got something else");
}
