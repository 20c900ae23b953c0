/** The words of the documentation: short sentences, and the field's terms. `node tools/words.mjs [files]` lists what to rewrite. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./run.mjs";

const longestAverage = 15;
const longestSentence = 35;

/** @type {readonly (readonly [RegExp, string])[]} What not to say, and what to say instead. */
const wrongWords = [
  [/\brefus(?:e|es|ed|ing|al|als)\b/i, "throws, rejects, reports"],
  [/\b(?:is|are|was|were) told\b|\bsays no\b/i, "throws, reports"],
  [/\bwithout a word\b/i, "silently"],
  [/\b(?:is|are|was|were) none\b/i, "there is no, has no"],
  [/\b(?:lies|stands) (?:in|on|beside|there|behind|here|where)\b|\bis kept beside\b/i, "is in, is stored in"],
  [/\b(?:obituary|obituaries|farewells?|invitations?)\b/i, "shutdown, handshake, rendezvous"],
  [/\b(?:courts?|judges?|verdicts?)\b/i, "differential fuzzer, oracle"],
  [/\bclimb(?:s|ing)?\b/i, "maximize"],
  [/\b(?:rounded|rounding|rounds) at random\b/i, "stochastic rounding"],
  [/\brecorded steps?\b/i, "compiled step, trace"],
  [/\bwhat has not moved\b/i, "cache entry"],
  [/\banew\b/i, "again"],
];
/** A clause as a subject: "Who imports tensors alone gets …". A question may begin so. */
const clauseSubject = /^\W*(?:Who|Whoever|Whatever) (?!.*\?$)/;

/** @typedef {{ file: string, line: number, problem: string, sentence: string }} Finding */

/**
 * The paragraphs of a page, with what is no prose taken out and all lines kept.
 * @param {string} text
 * @returns {{ line: number, text: string, isProse: boolean }[]}
 */
function paragraphsOf(text) {
  const blank = (/** @type {string} */ part) => part.replace(/[^\n]/g, "");
  const lines = text
    .replace(/^---\n[\s\S]*?\n---\n/, blank)
    .replace(/^( *)```[\s\S]*?^\1```$/gm, blank)
    .replace(/<!--[\s\S]*?-->/g, blank)
    .replace(/^(?: {4}.*\n)+/gm, (part) => (/^ {4,}[-*\d]/.test(part) ? part : blank(part)))
    .split("\n");
  /** @type {{ line: number, text: string, isProse: boolean }[]} */
  const paragraphs = [];
  let isOpen = false;
  for (const [i, line] of lines.entries()) {
    const isAlone = /^\s*(?:\||#|<)/.test(line);
    const begins = isAlone || !isOpen || /^\s*(?:[-*>]|\d+\.) /.test(line);
    if (line.trim() !== "" && begins) paragraphs.push({ line: i + 1, text: line, isProse: !isAlone });
    else if (line.trim() !== "") (paragraphs.at(-1) ?? { text: "" }).text += `\n${line}`;
    isOpen = line.trim() !== "" && !isAlone;
  }
  return paragraphs;
}

/** A paragraph as one reads it: a piece of code is one word, a link its text. @param {string} text */
function read(text) {
  return text
    .replace(/!\[[^\]]*\]\([^)]*\)/g, "")
    .replace(/`[^`]*`/g, (code) => `\`code\`${code.replace(/[^\n]/g, "")}`)
    .replace(/\]\([^)]*\)/g, "]")
    .replace(/<\/?\w[^>]*>/g, "")
    .replace(/^\s*(?:[-*>]|\d+\.) /, "");
}

const endOfSentence = /(?<!\b(?:e\.g|i\.e|vs|al|etc))(?<=[.!?][)"*]*)\s+(?=["(*[]*[A-Z`\d])/;

/**
 * What breaks the rules in a page.
 * @param {string} file its name, for the findings
 * @param {string} text
 * @returns {Finding[]}
 */
export function findingsOf(file, text) {
  /** @type {Finding[]} */
  const findings = [];
  let [words, sentences] = [0, 0];
  for (const paragraph of paragraphsOf(text)) {
    let line = paragraph.line;
    for (const sentence of paragraph.text === "" ? [] : splitKeepingLines(read(paragraph.text))) {
      const shown = sentence.trim().replace(/\s+/g, " ");
      const report = (/** @type {string} */ problem) => findings.push({ file, line, problem, sentence: shown });
      for (const [wrong, right] of wrongWords) {
        const found = wrong.exec(shown);
        if (found !== null) report(`"${found[0]}": say ${right}`);
      }
      if (paragraph.isProse) {
        const count = shown.split(" ").filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
        if (clauseSubject.test(shown)) report("a clause is the subject: begin with who acts");
        if (count > longestSentence) report(`${count} words in a sentence, at most ${longestSentence}`);
        words += count;
        if (count > 0) sentences += 1;
      }
      line += sentence.split("\n").length - 1;
    }
  }
  const average = sentences === 0 ? 0 : words / sentences;
  if (average > longestAverage) {
    const problem = `${average.toFixed(1)} words a sentence, at most ${longestAverage}`;
    findings.unshift({ file, line: 1, problem, sentence: `${words} words in ${sentences} sentences` });
  }
  return findings;
}

/** Sentences, each with the white space that follows it. @param {string} text */
function splitKeepingLines(text) {
  const ends = [...text.matchAll(new RegExp(endOfSentence, "g"))].map((match) => match.index + match[0].length);
  return [0, ...ends].map((begin, i) => text.slice(begin, ends[i]));
}

/** The pages that are checked. */
function pages() {
  const files = execFileSync("git", ["ls-files", "*.md"], { cwd: root, encoding: "utf8" }).trim().split("\n");
  const isChecked =
    /^(?:README|ARCHITECTURE|CONTRIBUTING)\.md$|^docs\/|^(?:packages|native|e2e)\/.*(?:README|FORMAT)\.md$/;
  return files.filter((file) => isChecked.test(file) && existsSync(join(root, file)));
}

/** @param {readonly string[]} files */
const findingsIn = (files) => files.flatMap((file) => findingsOf(file, readFileSync(join(root, file), "utf8")));

/** @param {Finding} finding */
const shown = ({ file, line, problem, sentence }) => `${file}:${line}: ${problem}\n    ${sentence}`;

export function checkWords() {
  const findings = findingsIn(pages());
  if (findings.length > 0) throw new Error(findings.map(shown).join("\n"));
}

if (process.argv[1] === import.meta.filename) {
  const files = process.argv.slice(2);
  const findings = findingsIn(files.length > 0 ? files : pages());
  for (const finding of findings) console.log(shown(finding));
  process.exitCode = findings.length > 0 ? 1 : 0;
}
