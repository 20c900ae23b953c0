/** Which error many calls end with, as a file has it: a line for each subject, a letter for each call. OPT_WRITE_GOLDENS=1 stores it again. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";

const LETTERS: Readonly<Record<string, string>> = {
  "": ".", // no error
  BAD_ARGUMENT: "A",
  BAD_SHAPE: "S",
  BAD_DTYPE: "D",
  BAD_STATE: "T",
  NO_GRADIENT: "G",
};

/** `A5.2`: five times BAD_ARGUMENT, then two calls that end well. */
function written(codes: readonly string[]): string {
  const letters = codes.map((code) => LETTERS[code] ?? `(${code})`);
  let text = "";
  for (let first = 0, next = 0; first < letters.length; first = next) {
    while (next < letters.length && letters[next] === letters[first]) next++;
    text += `${letters[first]}${next - first > 1 ? next - first : ""}`;
  }
  return text;
}

/** What compares a subject's codes, as `rawErrors` and `rankErrors` collect them, with those of the file. */
export function storedCodes(file: URL): (subject: string, codes: readonly string[]) => void {
  const path = fileURLToPath(file);
  const stored: Record<string, string> = existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : {};
  return (subject, codes) => {
    if (process.env.OPT_WRITE_GOLDENS === "1") {
      stored[subject] = written(codes);
      const lines = Object.entries(stored).map(([name, text]) => `${JSON.stringify(name)}: ${JSON.stringify(text)}`);
      writeFileSync(path, `{\n${lines.join(",\n")}\n}\n`);
    } else expect(written(codes), `codes of ${subject}; OPT_WRITE_GOLDENS=1 stores them`).toBe(stored[subject]);
  };
}
