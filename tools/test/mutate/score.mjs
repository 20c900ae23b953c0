/** What a run of an area has found, and whether that is less than before. Scores are in percent, in a file beside the area's code. */

/** No area may find less. */
const LOWEST = 80;

/**
 * @typedef {{ readonly file: string, readonly mutant: string, readonly reason: string }} Equivalent
 * a mutant that does what the code does, so that no test can find it: its file below the root, its text by `textOf`, and why
 * @typedef {{ readonly score: number, readonly sample: number, readonly mutants: number, readonly found: number }} Score
 * `sample` N: one of N mutants was tried; `mutants` are those tried that are not equivalent
 * @typedef {Score & { readonly equivalents?: readonly Equivalent[] }} Recorded
 * @typedef {{ readonly status: string, readonly replacement?: string, readonly location: import("./sample.mjs").Location }} Mutant
 * @typedef {{ readonly files: Readonly<Record<string, { readonly source: string, readonly mutants: readonly Mutant[] }>> }} Report
 * Stryker's: lines and columns begin with 1
 * @typedef {{ readonly file: string, readonly line: number, readonly mutant: string, readonly isRun: boolean }} Survivor
 * `isRun` is false if no test comes to that line
 */

/** `a > b → a >= b`, in one line, long ones cut: it stays true when lines move. @param {string} source @param {Mutant} mutant */
export function textOf(source, { location: { start, end }, replacement = "" }) {
  const lines = source.split("\n").slice(start.line - 1, end.line);
  lines[lines.length - 1] = (lines.at(-1) ?? "").slice(0, end.column - 1);
  lines[0] = (lines[0] ?? "").slice(start.column - 1);
  const short = (/** @type {string} */ text) => {
    const line = text.replace(/\s+/g, " ").trim();
    return line.length > 100 ? `${line.slice(0, 97)}...` : line;
  };
  return `${short(lines.join("\n"))} → ${short(replacement)}`;
}

const FOUND = ["Killed", "Timeout"];
const UNFOUND = ["Survived", "NoCoverage"];

/**
 * @param {Report} report
 * @param {number} sample
 * @param {readonly Equivalent[]} equivalents
 * @returns {Score & { survivors: Survivor[], stale: Equivalent[] }} `stale` name no mutant of today's code
 */
export function measure(report, sample, equivalents) {
  const named = new Set();
  let found = 0;
  /** @type {Survivor[]} */
  const survivors = [];
  for (const [file, { source, mutants }] of Object.entries(report.files)) {
    for (const mutant of mutants) {
      const text = textOf(source, mutant);
      const equivalent = equivalents.find((each) => each.file === file && each.mutant === text);
      if (equivalent) named.add(equivalent);
      if (FOUND.includes(mutant.status)) found++;
      else if (UNFOUND.includes(mutant.status) && !equivalent)
        survivors.push({ file, line: mutant.location.start.line, mutant: text, isRun: mutant.status === "Survived" });
    }
  }
  const mutants = found + survivors.length;
  const score = mutants === 0 ? 100 : Math.round((1000 * found) / mutants) / 10;
  return { score, sample, mutants, found, survivors, stale: equivalents.filter((each) => !named.has(each)) };
}

/** The square of a score's standard error: none if all mutants were tried. @param {Score} score */
function variance({ sample, mutants, found }) {
  if (mutants === 0) return 0;
  // Of a sample in which all or none was found, as if one had not been.
  const share = Math.min(Math.max(found, 1), mutants - 1) / mutants;
  return (share * (1 - share) * (1 - 1 / sample)) / mutants;
}

/** How much two scores may differ by the choice of mutants: two standard errors, and half a point in any case. @param {Score} a @param {Score} b */
export const noise = (a, b) => Math.max(200 * Math.sqrt(variance(a) + variance(b)), 0.5);

/**
 * Why an area fails: it finds less than before, or less than every area must.
 * @param {Score} now
 * @param {Score | undefined} recorded
 * @returns {string[]}
 */
export function problemsOf(now, recorded) {
  const problems = [];
  if (now.mutants === 0) problems.push("no mutant was tried");
  if (now.score < LOWEST) problems.push(`finds ${now.score} %, and must find ${LOWEST} %`);
  if (recorded === undefined) problems.push("has no recorded score; --write records this one");
  else if (now.score < recorded.score - noise(now, recorded))
    problems.push(
      `finds ${now.score} %, and found ${recorded.score} %: more than ${noise(now, recorded).toFixed(1)} points less`,
    );
  return problems;
}
