/** Format and style: Biome looks at all projects that are asked for in one process. */
import { relative, resolve } from "node:path";
import { start } from "../run.mjs";
import { batchExecutor, resultsByFile } from "./batch.mjs";

/** @param {readonly import("./batch.mjs").Asked[]} asked @param {string} root */
async function check(asked, root) {
  const folders = asked.map(({ folder }) => folder);
  const options = ["check", "--error-on-warnings", "--reporter=github", "--max-diagnostics=none"];
  const { ok, stdout, stderr } = await start("biome", [...options, ...folders], { quiet: true, cwd: root });
  const problems = [...stdout.matchAll(/^::(?:error|warning) title=(.*?),file=(.*?),line=(\d+),.*?::(.*)$/gm)].map(
    ([, rule, named = "", line, text]) => {
      const file = resolve(root, named); // Biome names it from the root, or in full.
      return { file, problem: `${relative(root, file)}:${line} ${rule}: ${text}` };
    },
  );
  const results = resultsByFile(asked, root, problems);
  // What is no problem of a file that was asked for fails all.
  const lost = !ok && [...results.values()].every(({ success }) => success);
  return lost ? new Map(asked.map(({ name }) => [name, { success: false, terminalOutput: stdout + stderr }])) : results;
}

const { batch, one } = batchExecutor(check);

export { batch };
export default one;
