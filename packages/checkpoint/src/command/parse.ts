/** What the options of commands are given as text. */
import { readFileSync } from "node:fs";
import { OptError } from "@opt/core";
import { InvalidArgumentError } from "commander";
import { isAddress } from "../remote/address";
import { parseBytes } from "./output";

export function parseCount(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("must be a whole number.");
}

/** Commander takes what follows `--cache` for its folder. */
export function parseCache(text: string): string {
  if (!isAddress(text)) return text;
  throw new InvalidArgumentError("must be a folder. Write --cache behind the addresses.");
}

export function parseTolerance(text: string): number {
  const value = Number(text);
  if (text.trim() !== "" && value >= 0) return value;
  throw new InvalidArgumentError("must be a number of at least 0.");
}

export function parseJob(text: string): [number, number] {
  const [, i, n] = /^(\d{1,9})\/(\d{1,9})$/.exec(text) ?? [];
  if (n !== undefined) return [Number(i), Number(n)];
  throw new InvalidArgumentError("must be part/parts, such as 1/4.");
}

export function parsePair(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf("=");
  if (at > 0) return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
  throw new InvalidArgumentError("must be a pattern and a name, such as 'encoder.*=*'.");
}

export function parseSize(text: string): number {
  const bytes = parseBytes(text);
  if (bytes !== undefined) return bytes;
  throw new InvalidArgumentError("must be a size such as 64MiB.");
}

export function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    const problem = `must be a readable JSON file, got ${error instanceof Error ? error.message : error}.`;
    throw new OptError("BAD_ARGUMENT", file, problem, "Check the path and its contents.");
  }
}
