/** Runs a program as ranks, in processes of their own, and brings back what they wrote. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const CLI = new URL("../local/cli.ts", import.meta.url).pathname;
const SOURCE = pathToFileURL(new URL("../../../", import.meta.url).pathname).href;

export interface Finished {
  readonly code: number | null;
  readonly out: string;
  readonly error: string;
  /** What each rank handed to `tell`, by its rank. */
  readonly told: unknown[];
}

/** What every program of a test begins with. */
const PRELUDE = `
import { connect, mesh } from "${SOURCE}parallel/src/index.ts";
import * as core from "${SOURCE}core/src/index.ts";
const tell = (value) => process.stdout.write(\`\\n@\${JSON.stringify([communicator.rank, value])}\\n\`);
const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
`;

export interface JobOptions {
  /** Further imports. */
  readonly imports?: string;
  /** Replaces \`const communicator = await connect()\`. */
  readonly connect?: string;
  /** Kills the job after so many milliseconds. Default 30,000. */
  readonly patience?: number;
  /** Another launcher than opt-run. */
  readonly launcher?: Launcher;
}

/** The command that runs Node with some arguments as so many ranks, and what it needs in its environment. */
export type Launcher = (
  size: number,
  args: readonly string[],
) => { command: string; args: readonly string[]; env?: Record<string, string> };

const optRun: Launcher = (size, args) => {
  const node = args.slice(0, -1);
  return { command: process.execPath, args: [...node, CLI, "-n", String(size), ...args.slice(-1)] };
};

/** @param body runs in each rank, where \`communicator\`, \`core\`, \`tell\` and \`sleep\` are known */
export async function runJob(size: number, body: string, options: JobOptions = {}): Promise<Finished> {
  const {
    imports = "",
    connect = "const communicator = await connect();",
    patience = 30_000,
    launcher = optRun,
  } = options;
  const folder = mkdtempSync(join(tmpdir(), "opt-parallel-"));
  const program = join(folder, "program.mts");
  writeFileSync(program, `${imports}\n${PRELUDE}\n${connect}\n${body}\nawait communicator.close();\n`);
  const node = ["--conditions=@opt/source", "--import", import.meta.resolve("tsx")];
  const { command, args, env } = launcher(size, [...node, program]);
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...env } });
  const texts = ["", ""] as [string, string];
  for (const [i, stream] of [child.stdout, child.stderr].entries())
    stream.setEncoding("utf8").on("data", (text: string) => {
      texts[i] += text;
    });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill("SIGTERM");
  }, patience);
  try {
    const code = await new Promise<number | null>((resolve) => child.on("close", (exit) => resolve(exit)));
    if (isLate) throw new Error(`the job did not end:\n${texts.join("\n")}`);
    const lines = texts[0].split("\n").filter((line) => line.startsWith("@"));
    const told: unknown[] = [];
    for (const line of lines) {
      const [rank, value] = JSON.parse(line.slice(1));
      told[rank] = value;
    }
    return { code, out: texts[0], error: texts[1], told };
  } finally {
    clearTimeout(timer);
    rmSync(folder, { recursive: true, force: true });
  }
}
