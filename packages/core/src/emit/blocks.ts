/** Blocks of text in C-like languages, as lists of lines. */

/** Lines that begin `depth` spaces further right. */
export function indent(lines: readonly string[], depth = 2): string[] {
  const before = " ".repeat(depth);
  return lines.map((line) => before + line);
}

/** `head { lines }`, the lines indented. */
export function block(head: string, lines: readonly string[]): string[] {
  return [`${head} {`, ...indent(lines), "}"];
}
