import { expect, it } from "vitest";
import { findingsOf } from "./words.mjs";

const words = (count: number) => Array.from({ length: count }, () => "word").join(" ");
const long = `${words(36)}.`;

it.each([
  ["a wrong word", "Fine.\nThe loader refuses such a file.", 2, '"refuses"'],
  ["a wrong word in a table", "| a | b |\n|---|---|\n| x | skipped without a word |", 3, '"without a word"'],
  ["a wrong word in a heading", "Fine.\n\n## Where a farewell is", 3, '"farewell"'],
  ["a wrong word across lines", "Of these there\nare none left.", 1, '"are none"'],
  ["a long sentence", `Fine. Short ones first.\nThen ${long} Fine. Fine. Fine.`, 2, "37 words in a sentence"],
  ["a clause as a subject", "Whoever imports it pays.", 1, "a clause is the subject"],
  ["a long average", `One ${words(20)}. Two ${words(20)}.`, 1, "21.0 words a sentence"],
])("finds %s", (_, text, line, problem) => {
  expect(findingsOf("x.md", text)).toEqual([
    { file: "x.md", line, problem: expect.stringContaining(problem), sentence: expect.any(String) },
  ]);
});

it.each([
  ["code", `Run this:\n\n\`\`\`js\n// refuses ${long}\n\`\`\`\n`],
  ["code in a sentence", `Call \`${words(40)}\` first.`],
  ["addresses", `See [this](https://example.org/refuses).`],
  ["the front of a page", `---\ntitle: refuses\n---\n\n# Fine\n`],
  ["long cells of tables", `| ${long} |\n|---|\n| ${long} |`],
  ["items of a list", `- ${words(14)}\n- ${words(14)}\n- ${words(14)}`],
  ["questions", "Who pays for it?"],
])("takes no offence at %s", (_, text) => expect(findingsOf("x.md", text)).toEqual([]));
