import { problemOfJson } from "../../format/json/json-text";
import { isObject, type Json } from "../../format/source";

import { corrupt } from "./errors";

export { isObject } from "../../format/source";

/** Nobody writes more, and whoever nests without end wants to fill the memory or the stack. */
const DEEPEST = 500;

/** A file's JSON object. @throws OptError CORRUPT for anything else */
export function parseJson(bytes: Uint8Array, path: string): { [key: string]: Json | undefined } {
  let value: unknown;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    const problem = problemOfJson(text, DEEPEST);
    if (problem !== undefined) throw new Error(problem);
    value = JSON.parse(text);
  } catch (error) {
    throw corrupt(path, `JSON is needed, got ${(error as Error).message}`);
  }
  if (isObject(value)) return value;
  throw corrupt(path, "a JSON object is needed, got something else");
}
