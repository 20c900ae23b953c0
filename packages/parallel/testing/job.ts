/** Runs a program as ranks, in processes of their own, and brings back what they wrote. */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { bundled, optRun } from "@opt/testkit/bundled";
import { named, renamed } from "./told";

const BUILD = new URL("../../build/", import.meta.url).pathname;
const SOURCE = pathToFileURL(new URL("../../", import.meta.url).pathname).href;

export interface FinishedJob {
  readonly code: number | null;
  readonly out: string;
  readonly error: string;
  /** What each rank handed to `tell`, by its rank. */
  readonly told: unknown[];
}

/** What every program of a test begins with. */
const PRELUDE = `
import { connect, core, mesh } from "./library.mjs";
const named = ${named};
const tell = (value) => process.stdout.write(\`\\n@\${JSON.stringify([communicator.rank, value], named)}\\n\`);
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
`;

export interface JobOptions {
  /** Further imports. */
  readonly imports?: string;
  /** Replaces \`const communicator = await connect()\`. */
  readonly connect?: string;
  /** Kills the job after so many milliseconds: what hangs, not what is slow. Default 240,000. */
  readonly patience?: number;
  /** Another launcher than opt-run. */
  readonly launcher?: Launcher;
}

/** The command that runs a program of Node as so many ranks, and what it needs in its environment. */
export type Launcher = (
  size: number,
  program: string,
) => { command: string; args: readonly string[]; env?: Record<string, string> };

/** @param body runs in each rank, where \`communicator\`, \`core\`, \`tell\` and \`sleep\` are known */
export async function runJob(size: number, body: string, options: JobOptions = {}): Promise<FinishedJob> {
  const {
    imports = "",
    connect = "const communicator = await connect();",
    patience = 240_000,
    launcher = localLauncher,
  } = options;
  const program = await programOf(imports, `${connect}\n${body}\nawait communicator.close();\n`);
  const { command, args, env } = launcher(size, program);
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } });
  const texts = ["", ""] as [string, string];
  for (const [i, stream] of [child.stdout, child.stderr].entries())
    stream.setEncoding("utf8").on("data", (text: string) => {
      texts[i] += text;
    });
  let isLate = false;
  let timer = setTimeout(() => {
    isLate = true;
    child.kill("SIGTERM");
    // A launcher that does not end its ranks: none of them may outlive the test.
    timer = setTimeout(() => {
      for (const pid of [...childrenOf(child.pid!), child.pid!]) process.kill(pid, "SIGKILL");
    }, 10_000);
  }, patience);
  try {
    const code = await new Promise<number | null>((resolve) => child.on("close", (exit) => resolve(exit)));
    if (isLate) throw new Error(`the job did not end:\n${texts.join("\n")}`);
    const lines = texts[0].split("\n").filter((line) => line.startsWith("@"));
    const told: unknown[] = [];
    for (const line of lines) {
      const [rank, value] = JSON.parse(line.slice(1), renamed);
      told[rank] = value;
    }
    return { code, out: texts[0], error: texts[1], told };
  } finally {
    clearTimeout(timer);
  }
}

/** Ids of the processes that a process has started, where the system tells them. */
function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** opt-run, which lies beside what it starts. */
export const localLauncher: Launcher = (size, program) => ({
  command: process.execPath,
  args: [join(dirname(program), "cli.mjs"), "--no-prefix", "-n", String(size), "--grace", "2s", program],
});

/**
 * One job for several tests: the bodies run one after the other in each rank.
 *
 * @param bodies by their names; each has a `tell` of its own
 * @returns what the body of a name told, by rank
 */
export function jobOf<Name extends string>(
  size: number,
  bodies: Readonly<Record<Name, string>>,
  options: JobOptions = {},
): (name: Name) => Promise<unknown[]> {
  const entries = Object.entries<string>(bodies).map(([name, body]) => `${name}: async (tell) => {\n${body}\n}`);
  const body = `const { device } = core.zeros([1]);
    const all = {};
    for (const [name, body] of Object.entries({ ${entries.join(",\n")} })) {
      await body((value) => { all[name] = value; });
      await core.init(device.name);
    }
    tell(all);`;
  let job: Promise<FinishedJob> | undefined;
  return async (name) => {
    job ??= runJob(size, body, options);
    const { told, error } = await job;
    if (error !== "") throw new Error(error);
    return (told as Record<Name, unknown>[]).map((all) => all[name]);
  };
}

/**
 * Jobs for all tests of a file: the bodies of as many ranks run one after the other in the same processes, once a test asks for one.
 *
 * @returns takes a body while tests are registered, and returns what gives its values by rank
 */
export function sharedJobs(options: JobOptions = {}): <Told>(size: number, body: string) => () => Promise<Told[]> {
  const bodies = new Map<number, Record<string, string>>();
  const jobs = new Map<number, ReturnType<typeof jobOf>>();
  return <Told>(size: number, body: string) => {
    const own = bodies.get(size) ?? {};
    bodies.set(size, own);
    const name = `body${Object.keys(own).length}`;
    own[name] = body;
    return async () => {
      const job = jobs.get(size) ?? jobOf(size, own, options);
      jobs.set(size, job);
      return (await job(name)) as Told[];
    };
  };
}

/** By what they import, the folders of jobs: all of it in one library, and opt-run beside it. */
const folders = new Map<string, Promise<string>>();

async function folderOf(imports: string): Promise<string> {
  mkdirSync(BUILD, { recursive: true });
  const source = mkdtempSync(join(BUILD, "job-"));
  const path = join(source, "library.ts");
  writeFileSync(
    path,
    `${imports.replaceAll("import {", "export {")}
export { connect, mesh } from "${SOURCE}parallel/src/index.ts";
export * as core from "${SOURCE}core/src/index.ts";
`,
  );
  const [library] = await bundled(path, optRun);
  rmSync(source, { recursive: true });
  return dirname(library);
}

let programs = 0;

/** The path of a program. Programs of the same imports share one bundle, whose file is deleted when this process ends. */
export async function programOf(imports: string, body: string): Promise<string> {
  if (!folders.has(imports)) folders.set(imports, folderOf(imports));
  const program = join(await folders.get(imports)!, `program-${programs++}.mjs`);
  const fromLibrary = imports.replaceAll(/(import (?:{[^}]*} from )?)"[^"]*"/g, '$1"./library.mjs"');
  writeFileSync(program, `${fromLibrary}\n${PRELUDE}\n${body}`);
  return program;
}
