/** Checks plain JSON. Errors name the place of a value that JSON.stringify would silently drop or change. */
import { OptError, show } from "@opt/core";
import type { Json } from "../source";

/** @param name the option, for messages */
export function checkedValues(values: unknown, name = "values"): { [key: string]: Json } {
  if (typeof values !== "object" || values === null || Array.isArray(values)) {
    throw new OptError("BAD_ARGUMENT", "saveCheckpoint", `${name} must be an object.`, "For example { epoch: 3 }.");
  }
  return checked(values, name, 0) as { [key: string]: Json };
}

function checked(value: unknown, place: string, depth: number): Json {
  if (value === null || typeof value === "boolean" || typeof value === "string") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (depth > 100) throw rejection(place, "nesting deeper than 100");
  if (Array.isArray(value)) return value.map((item, i) => checked(item, `${place}[${i}]`, depth + 1));
  const prototype = typeof value === "object" ? Object.getPrototypeOf(value) : undefined;
  if (prototype !== null && prototype !== Object.prototype) throw rejection(place, describe(value));
  const members = Object.entries(value as object);
  return Object.fromEntries(members.map(([key, item]) => [key, checked(item, `${place}.${key}`, depth + 1)]));
}

function describe(value: unknown): string {
  if (value === undefined) return "undefined";
  return typeof value === "object" ? show(value) : `${typeof value} ${String(value)}`;
}

function rejection(place: string, got: string): OptError {
  const advice = "Put arrays into tensors, null for NaN or undefined.";
  return new OptError("BAD_ARGUMENT", "saveCheckpoint", `${place} must be plain JSON, got ${got}.`, advice);
}

/** As JSON.stringify, but keeps the sign of -0, which JSON can hold. */
export function jsonText(value: Json): string {
  if (typeof value !== "object" || value === null) return Object.is(value, -0) ? "-0" : JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(jsonText)}]`;
  return `{${Object.entries(value).map(([name, item]) => `${JSON.stringify(name)}:${jsonText(item)}`)}}`;
}

/** A list of numbers as JSON, quicker than the list says it itself. */
export function listText(numbers: readonly number[]): string {
  let text = "[";
  for (let i = 0; i < numbers.length; i++) text += i === 0 ? numbers[i] : `,${numbers[i]}`;
  return `${text}]`;
}

/** Whether both are the same plain JSON, in whatever order their members stand. */
export function sameJson(a: Json | undefined, b: Json | undefined): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return Object.is(a, b);
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [a, b] as [Record<string, Json>, Record<string, Json>];
  const names = Object.keys(left);
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => Object.hasOwn(right, name) && sameJson(left[name], right[name]))
  );
}
