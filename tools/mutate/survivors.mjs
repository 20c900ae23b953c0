/** Prints each bug that no test notices as soon as that is known: a run takes minutes, and its reader can begin. */
import { readFileSync } from "node:fs";
import { relative } from "node:path";

/** @typedef {{ fileName: string, location: { start: { line: number, column: number }, end: { line: number, column: number } } }} Place */

class Survivors {
  /** @param {Place & { status: string, statusReason?: string, replacement?: string, mutatorName: string }} mutant */
  onMutantTested({ status, statusReason, fileName, location, replacement, mutatorName }) {
    const { start, end } = location;
    const isEndless = /hit limit/i.test(statusReason ?? "");
    if (!/Survived|NoCoverage|Timeout/.test(status) || isEndless) return;
    const lines = readFileSync(fileName, "utf8")
      .split("\n")
      .slice(start.line - 1, end.line);
    const [first = ""] = lines;
    const place = `${relative(process.cwd(), fileName)}:${start.line}:${start.column}`;
    const original =
      lines.length > 1 ? `${first.slice(start.column - 1)} ...` : first.slice(start.column - 1, end.column - 1);
    console.log(`${status} ${place} ${mutatorName} in: ${first.trim()}\n    ${original}\n    -> ${replacement}`);
  }
}

export const strykerPlugins = [{ kind: "Reporter", name: "survivors", injectableClass: Survivors }];
