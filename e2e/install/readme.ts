/** The README's lines and example, and the page without a bundler, as a reader takes them. */
import { readFileSync } from "node:fs";

/** The first block of commands: how a reader gets the packages. */
export function readmeCommands(path: URL): string {
  return blockOf(readFileSync(path, "utf8"), "sh");
}

/** The first `js` block under the heading that names the example: what a reader of the README pastes first. */
export function readmeExample(path: URL): string {
  const [, section = ""] = readFileSync(path, "utf8").split(/^#+ .*\bexample\b.*$/im);
  return blockOf(section, "js");
}

/** The first block of a page in this language. */
export function blockOf(page: string, language: string): string {
  const block = new RegExp(`^\`\`\`${language}\\n(?<code>.*?)^\`\`\`$`, "ms").exec(page);
  if (!block?.groups?.code) throw new Error(`There is no ${language} block.`);
  return block.groups.code;
}
