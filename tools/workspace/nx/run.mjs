/** Runs Nx as the tools use it. */
import { root, start } from "../run.mjs";

/**
 * `nx build nadam` is `nx(["build", "nadam"])`.
 * @param {readonly string[]} args
 * @param {Record<string, string>} [env]
 * @throws Error where a task fails
 */
export async function nx(args, env = {}) {
  const { ok } = await start("nx", [...args, "--output-style=static"], { cwd: root, env, minutes: 60 });
  if (!ok) throw new Error(`[nx] ${args.join(" ")} failed: see above.`);
}
