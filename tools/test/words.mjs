/** The words of the documentation: short sentences, and the field's terms. `node tools/test/words.mjs [files]` lists what to rewrite. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import MarkdownIt from "markdown-it";
import { root } from "../workspace/run.mjs";

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

const markdown = new MarkdownIt({ html: true });
const sentences = new Intl.Segmenter("en", { granularity: "sentence" });

/** The paragraphs, headings and cells of a page, as one reads them: a piece of code is one word, a link its text. @param {string} page */
function paragraphsOf(page) {
  const text = page.replace(/^---\n[\s\S]*?\n---\n/, (front) => front.replace(/[^\n]/g, ""));
  let line = 0;
  let block = "";
  return markdown.parse(text, {}).flatMap(({ type, map, content, children }) => {
    if (map) line = map[0] + 1;
    if (type === "html_block") return { line, text: content.replace(/<[^>]*>/g, ""), isProse: false };
    if (type !== "inline") block = type;
    if (type !== "inline" || children === null) return [];
    const parts = children.map((part) => {
      if (part.type === "code_inline") return "Code"; // sentences may begin with it
      if (part.type === "softbreak") return "\n";
      return part.type === "text" ? part.content : "";
    });
    return { line, text: parts.join(""), isProse: block === "paragraph_open" };
  });
}

/**
 * What breaks the rules in a page.
 * @param {string} file its name, for the findings
 * @param {string} page its text
 * @returns {Finding[]}
 */
export function findingsOf(file, page) {
  /** @type {Finding[]} */
  const findings = [];
  /** How many words each sentence has. @type {number[]} */
  const counts = [];
  for (const { line, text, isProse } of paragraphsOf(page)) {
    for (const { segment, index } of sentences.segment(text.replaceAll("\n", " "))) {
      const sentence = segment.trim();
      const at = line + text.slice(0, index).split("\n").length - 1;
      const report = (/** @type {string} */ problem) => findings.push({ file, line: at, problem, sentence });
      for (const [wrong, right] of wrongWords) {
        const found = wrong.exec(sentence);
        if (found !== null) report(`"${found[0]}": say ${right}`);
      }
      const count = sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
      if (!isProse || count === 0) continue;
      if (clauseSubject.test(sentence)) report("a clause is the subject: begin with who acts");
      if (count > longestSentence) report(`${count} words in a sentence, at most ${longestSentence}`);
      counts.push(count);
    }
  }
  const words = counts.reduce((sum, count) => sum + count, 0);
  const average = words / Math.max(1, counts.length);
  if (average > longestAverage) {
    const problem = `${average.toFixed(1)} words a sentence, at most ${longestAverage}`;
    findings.unshift({ file, line: 1, problem, sentence: `${words} words in ${counts.length} sentences` });
  }
  return findings;
}

/** The pages that are checked. */
function pages() {
  const files = execFileSync("git", ["ls-files", "*.md"], { cwd: root, encoding: "utf8" }).trim().split("\n");
  const isChecked =
    /^(?:README|ARCHITECTURE|CONTRIBUTING)\.md$|^docs\/|^(?:packages|native|e2e)\/.*(?:README|FORMAT)\.md$/;
  return files.filter((file) => isChecked.test(file) && existsSync(join(root, file)));
}

/** What to rewrite, as text. @param {readonly string[]} [files] */
function listOf(files = pages()) {
  const findings = files.flatMap((file) => findingsOf(file, readFileSync(join(root, file), "utf8")));
  return findings.map(({ file, line, problem, sentence }) => `${file}:${line}: ${problem}\n    ${sentence}`).join("\n");
}

export function checkWords() {
  const list = listOf();
  if (list !== "") throw new Error(list);
}

if (process.argv[1] === import.meta.filename) {
  const list = listOf(process.argv.length > 2 ? process.argv.slice(2) : undefined);
  if (list !== "") console.log(list);
  process.exitCode = list === "" ? 0 : 1;
}
