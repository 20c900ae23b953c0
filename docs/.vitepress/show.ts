/** How the console of a sample shows a value: text as it is, lists in brackets, tensors in their own words. */
export function show(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Error) return value.message;
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return list([...(value as unknown as number[])]);
  if (Array.isArray(value)) return list(value);
  if (typeof value !== "object" || value === null) return String(value);
  if (value.toString !== Object.prototype.toString) return String(value);
  return `{ ${Object.entries(value)
    .map(([key, each]) => `${key}: ${nested(each)}`)
    .join(", ")} }`;
}

const list = (values: readonly unknown[]) => `[${values.map(nested).join(", ")}]`;
const nested = (value: unknown) => (typeof value === "string" ? JSON.stringify(value) : show(value));
