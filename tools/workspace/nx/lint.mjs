/** Format and style: Biome looks at all projects that are asked for in one process. */
import { join } from "node:path";
import { start } from "../run.mjs";
import { batchExecutor, resultsByFile } from "./batch.mjs";

/** @param {readonly import("./batch.mjs").Asked[]} asked @param {string} root */
async function check(asked, root) {
  const folders = asked.map(({ folder }) => folder);
  const options = ["check", "--error-on-warnings", "--reporter=github", "--max-diagnostics=none"];
  const { ok, stdout, stderr } = await start("biome", [...options, ...folders], { quiet: true, cwd: root });
  const problems = [...stdout.matchAll(/^::(?:error|warning) title=(.*?),file=(.*?),line=(\d+),.*?::(.*)$/gm)].map(
    ([, rule, file = "", line, text]) => ({ file: join(root, file), problem: `${file}:${line} ${rule}: ${text}` }),
  );
  if (!ok && problems.length === 0)
    return new Map(asked.map(({ name }) => [name, { success: false, terminalOutput: stdout + stderr }]));
  return resultsByFile(asked, root, problems);
}

const { batch, one } = batchExecutor(check);

export { batch };
export default one;
