/** Values in the words of a message: short, whatever they are, and never an error of their own. */

const LONGEST = 40;

/** `"text"`, `[1, 2]`, `{ lr, betas }`, `1n`, `a function`, the class of an instance. */
export function show(value: unknown): string {
  if (Array.isArray(value)) return cut(`[${value.slice(0, LONGEST).map(element).join(", ")}]`);
  switch (typeof value) {
    case "string":
      return cut(JSON.stringify(value));
    case "bigint":
      return `${value}n`;
    case "function":
      return "a function";
    case "object":
      return value === null ? "null" : showObject(value);
    default:
      return String(value);
  }
}

const element = (value: unknown) => (Array.isArray(value) ? "[...]" : show(value));

const cut = (text: string) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}...` : text);

/** Classes of ours by their marks: bundlers rename classes. The first that fits counts. */
const MARKED: readonly (readonly [mark: symbol, name: string])[] = [
  [Symbol.for("@opt/core.tensor"), "a Tensor"],
  [Symbol.for("@opt/core.operate"), "an Expression"],
];

function showObject(value: object): string {
  const marked = MARKED.find(([mark]) => mark in value);
  if (marked !== undefined) return marked[1];
  if (!isPlainObject(value)) return `a ${value.constructor?.name || "nameless object"}`;
  const names = Object.keys(value);
  return names.length === 0 ? "{}" : cut(`{ ${names.join(", ")} }`);
}

/** True for `{ ... }`; false for what a class made: a tensor, a Map, a typed array. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}
