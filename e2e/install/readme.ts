/** The README's lines and example, as a reader takes them. */
import { readFileSync } from "node:fs";

/** The first block of commands: how a reader gets the packages. */
export function readmeCommands(path: URL): string {
  return /^```sh\n(?<lines>.*?)^```$/ms.exec(readFileSync(path, "utf8"))!.groups!.lines!;
}

/** The first `js` block under the heading that names the example: what a reader of the README pastes first. */
export function readmeExample(path: URL): string {
  const [, section = ""] = readFileSync(path, "utf8").split(/^#+ .*\bexample\b.*$/im);
  const block = /^```js\n(?<code>.*?)^```$/ms.exec(section);
  if (!block?.groups?.code) throw new Error(`${path.pathname} has no js block under a heading "Example".`);
  return block.groups.code;
}
