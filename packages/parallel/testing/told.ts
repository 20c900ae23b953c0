/** What ranks tell, as text. JSON would make null of NaN and Infinity, which count as 0 where numbers are compared. */
export const named = (_: string, value: unknown): unknown =>
  typeof value === "number" && !Number.isFinite(value) ? { number: String(value) } : value;

export const renamed = (_: string, value: { readonly number?: unknown } | null): unknown =>
  typeof value?.number === "string" ? Number(value.number) : value;
