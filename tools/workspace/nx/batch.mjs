/** What batch executors share: Nx gives them all tasks of a target at once, and one process serves them all. */
import { join, relative, sep } from "node:path";

/**
 * @typedef {import("@nx/devkit").ExecutorContext} Context
 * @typedef {{ success: boolean, terminalOutput: string }} Result
 * @typedef {{ task: string, name: string, folder: string, asked: string[] }} Asked
 * A project that was asked for, and what stands behind `--` on the command line.
 */

/**
 * An executor of Nx that runs `body` once for all projects that are asked for.
 * @param {(projects: readonly Asked[], root: string) => Promise<Map<string, Result>>} body results by the projects' names
 */
export function batchExecutor(body) {
  /** @param {import("@nx/devkit").TaskGraph} graph @param {object} _inputs @param {object} _options @param {Context} context */
  const batch = async (graph, _inputs, _options, context) => {
    const asked = Object.values(graph.tasks).map((task) => ({
      task: task.id,
      name: task.target.project,
      folder: context.projectsConfigurations.projects[task.target.project]?.root ?? "",
      // Nx takes it out of the options that it gives to a batch.
      asked: /** @type {unknown[]} */ (task.overrides.__overrides_unparsed__ ?? []).map(String),
    }));
    const results = await body(asked, context.root);
    // Nx shows what a batch prints, and not what its tasks give back.
    for (const { name } of asked) process.stdout.write(results.get(name)?.terminalOutput ?? "");
    return Object.fromEntries(
      asked.map(({ task, name }) => [
        task,
        results.get(name) ?? { success: false, terminalOutput: "It did not run.\n" },
      ]),
    );
  };
  /** The same for one project, where batches are turned off. @param {Record<string, any>} options @param {Context} context */
  const one = async (options, context) => {
    const name = context.projectName ?? "";
    const folder = context.projectsConfigurations.projects[name]?.root ?? "";
    const asked = (options.__overrides_unparsed__ ?? []).map(String);
    const result = (await body([{ task: name, name, folder, asked }], context.root)).get(name);
    process.stdout.write(result?.terminalOutput ?? "");
    return { success: result?.success ?? false };
  };
  return { batch, one };
}

/**
 * Problems by project: each belongs to the project with the longest folder that has its file.
 * @param {readonly Asked[]} asked
 * @param {string} root
 * @param {readonly { file: string, problem: string }[]} problems
 */
export function resultsByFile(asked, root, problems) {
  /** @type {Map<string, string[]>} */
  const found = new Map(asked.map(({ name }) => [name, []]));
  for (const { file, problem } of problems) {
    const name = ownerOf(asked, root, file);
    if (name !== undefined) found.get(name)?.push(problem);
  }
  return new Map(
    [...found].map(([name, own]) => [
      name,
      { success: own.length === 0, terminalOutput: own.map((each) => `${each}\n`).join("") },
    ]),
  );
}

/** What TypeScript says is wrong, by file. @param {string} output @param {string} root */
export function compilerProblems(output, root) {
  return output
    .split(/\n(?=\S)/)
    .map((problem) => ({ problem, file: /^(\S.*?)\(\d+,\d+\): error/.exec(problem)?.[1] }))
    .flatMap(({ problem, file }) =>
      file === undefined ? [] : [{ problem: problem.trimEnd(), file: join(root, file) }],
    );
}

/** @param {readonly Asked[]} asked @param {string} root @param {string} file */
export function ownerOf(asked, root, file) {
  const path = relative(root, file).replaceAll(sep, "/");
  const owners = asked.filter(({ folder }) => path.startsWith(`${folder}/`));
  return owners.sort((a, b) => b.folder.length - a.folder.length)[0]?.name;
}
