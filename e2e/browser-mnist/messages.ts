/** Launches are data: what a backend is asked for, as text that travels into a page. */

export type Message =
  | { readonly ask: "allocate"; readonly id: number; readonly bytes: number }
  | { readonly ask: "free"; readonly id: number }
  | { readonly ask: "write"; readonly id: number; readonly byteOffset: number; readonly base64: string }
  | { readonly ask: "kernel"; readonly id: number; readonly spec: unknown }
  | { readonly ask: "launch"; readonly launch: unknown }
  | { readonly ask: "read"; readonly id: number; readonly byteOffset: number; readonly bytes: number }
  | { readonly ask: "sync" };

/** JSON with the numbers that it has not. */
export function encode(value: unknown): string {
  return JSON.stringify(value, (_key, part) => {
    if (typeof part !== "number" || (Number.isFinite(part) && !Object.is(part, -0))) return part;
    return { $number: Object.is(part, -0) ? "-0" : String(part) };
  });
}

export function decode<T>(text: string): T {
  return JSON.parse(text, (_key, part) => {
    return typeof part === "object" && part !== null && "$number" in part ? Number(part.$number) : part;
  });
}
