/** Finds the examples of the documentation: js and ts blocks of READMEs and pages, and @example parts of doc comments. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { workspaceFolders } from "../../tools/workspace/packages.mjs";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export interface Example {
  /** Where it stands: file:line. */
  readonly place: string;
  readonly code: string;
  /** Runs as it stands, in the page too. */
  readonly isWhole: boolean;
  /** What it prints, where the page says so. */
  readonly output?: string | undefined;
}

/** The pages of docs/ that somebody has written. */
export function writtenPages(): string[] {
  return readdirSync(`${ROOT}docs`, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md") && !file.startsWith("api/"))
    .map((page) => `docs/${page}`)
    .sort();
}

export function findExamples(): Example[] {
  const texts = ["README.md", ...files("", "README.md"), ...writtenPages()];
  const readmes = texts.flatMap(blocksOfMarkdown);
  const sources = files("src/", ".ts").filter((file) => !/\.(test|soak)\.ts$/.test(file));
  return [...readmes, ...sources.flatMap(examplesOfSource)];
}

/** The files of every package that lie under `folder` and end in `suffix`. */
function files(folder: string, suffix: string): string[] {
  return workspaceFolders()
    .filter((name) => name.startsWith("packages/") && name !== "packages/testkit") // its examples are tests themselves
    .flatMap((name) =>
      readdirSync(`${ROOT}${name}/${folder}`, { recursive: folder !== "", encoding: "utf8" }).map(
        (file) => `${name}/${folder}${file}`,
      ),
    )
    .filter((file) => file.endsWith(suffix) && !file.includes("/node_modules/"))
    .sort();
}

function blocksOfMarkdown(file: string): Example[] {
  const text = readFileSync(ROOT + file, "utf8");
  const blocks = /^```(?:js|ts)( run)?\n([\s\S]*?)^```$(?:\n+```text output\n([\s\S]*?)^```$)?/gm;
  return [...text.matchAll(blocks)].map(({ index, 1: run, 2: code, 3: output }) => ({
    place: `${file}:${lineOf(text, index)}`,
    code: code!,
    isWhole: run !== undefined,
    output,
  }));
}

function examplesOfSource(file: string): Example[] {
  const text = readFileSync(ROOT + file, "utf8");
  return [...text.matchAll(/^[ \t]*\* @example\n([\s\S]*?)(?=^[ \t]*\*\/|^[ \t]*\* @)/gm)].map((match) => ({
    place: `${file}:${lineOf(text, match.index)}`,
    code: match[1]!.replace(/^[ \t]*\* ?/gm, "").replace(/^```.*$/gm, ""),
    isWhole: false,
  }));
}

function lineOf(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}
