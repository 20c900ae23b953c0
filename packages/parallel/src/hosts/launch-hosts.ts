/** Starts the ranks of a job on several hosts, and once more on those that are left when it fails. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { constants, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { pathToFileURL } from "node:url";
import { type End, type Launch, linesToStreams, restarted } from "../local/launcher";
import { eachLine, type RankLines } from "../local/lines";
import { type Host, type MpiLauncher, ranksOf } from "./mpi-launcher";

/** Milliseconds after which a host that does not answer is lost. */
const ANSWER = 10_000;

export interface HostsLaunch extends Omit<Required<Launch>, "size" | "env"> {
  readonly hosts: readonly Host[];
  /** A job goes on with so many ranks at least. */
  readonly minRanks: number;
  readonly launcher: MpiLauncher;
}

/** Runs the job on the hosts that answer, and after a failure again, as long as restarts are left. Resolves with its exit code. */
export async function launchHosts(job: HostsLaunch): Promise<number> {
  let now = await answering(job);
  // The launcher itself says why it reaches no host.
  if (now.left.length === 0) now = { left: job.hosts, named: "", isFinal: false };
  if (now.named !== "") job.error(`opt-run: ${now.named}${now.isFinal ? "; the job is over" : ""}\n`);
  if (now.isFinal) return 1;
  return restarted(job.restarts, job.error, async () => {
    const { code, failure } = await live(job, now.left);
    if (failure === undefined) return { code };
    now = await answering(job);
    return { code, failure: now.named === "" ? failure : `${failure}; ${now.named}`, isFinal: now.isFinal };
  });
}

/** The hosts that answer, in words which do not, and whether too few ranks are left. Launchers may wait forever for such a host. */
async function answering(job: HostsLaunch): Promise<{ left: readonly Host[]; named: string; isFinal: boolean }> {
  const answers: boolean[] = [];
  // One at a time: launchers of one machine share a folder.
  for (const host of job.hosts) answers.push(await doesAnswer(job, host));
  const left = job.hosts.filter((_, i) => answers[i]);
  const lost = job.hosts.filter((_, i) => !answers[i]).map(({ name }) => name);
  const isFinal = ranksOf(left) < job.minRanks;
  const least = isFinal ? `, --min-ranks is ${job.minRanks}` : "";
  const named = lost.length > 0 ? `no answer from ${lost.join(", ")}: ${ranksOf(left)} ranks are left${least}` : "";
  return { left, named, isFinal };
}

/** The engine of MPI, where the program can import it: what runs under `-n` need not import it for hosts. */
function engineOf(program: string): string[] {
  try {
    const path = createRequire(resolve(program)).resolve("@opt/collectives-mpi");
    return ["--import", pathToFileURL(path).href];
  } catch {
    return [];
  }
}

function start(
  { launcher, grace }: HostsLaunch,
  hosts: readonly Host[],
  command: readonly string[],
  way: "pipe" | "inherit" | "ignore",
): ChildProcess {
  const folder = mkdtempSync(join(tmpdir(), "opt-run-"));
  const env = { ...process.env, ...launcher.environment?.(hosts, join(folder, "hosts")) };
  const options = launcher.options(hosts, { grace, isPlain: way !== "pipe" });
  const input = way === "ignore" ? "ignore" : "inherit";
  const child = spawn(launcher.command, [...options, ...command], { stdio: [input, way, way], env });
  child.on("close", () => rmSync(folder, { recursive: true, force: true }));
  return child;
}

/** Asks through the launcher itself: whatever way it has to its hosts. */
function doesAnswer(job: HostsLaunch, { name }: Host): Promise<boolean> {
  const child = start(job, [{ name, slots: 1 }], [process.execPath, "--version"], "ignore");
  const timer = setTimeout(() => child.kill("SIGKILL"), ANSWER);
  return new Promise((resolve) => {
    child.on("error", () => resolve(false));
    child.on("exit", (code) => {
      clearTimeout(timer);
      resolve(code === 0);
    });
  });
}

function live(job: HostsLaunch, hosts: readonly Host[]): Promise<End> {
  const { launcher, args, isPlain } = job;
  const command = [process.execPath, ...process.execArgv, ...engineOf(args[0]!), ...args];
  const child = start(job, hosts, command, isPlain ? "inherit" : "pipe");
  const lines = linesToStreams();
  for (const name of ["stdout", "stderr"] as const)
    if (child[name]) handOn(child[name], launcher.tag, lines[name], process[name]);
  let stopped: NodeJS.Signals | undefined;
  const stop = (signal: NodeJS.Signals) => {
    child.kill(stopped ? "SIGKILL" : signal);
    stopped ??= signal;
    setTimeout(() => child.kill("SIGKILL"), 1000 * job.grace + ANSWER).unref();
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  for (const signal of signals) process.on(signal, stop);
  return new Promise((resolve) => {
    const over = (end: End) => {
      for (const signal of signals) process.off(signal, stop);
      resolve(end);
    };
    child.on("error", ({ message }) => over({ code: 1, failure: `${launcher.command} does not start: ${message}` }));
    child.on("close", (code, signal) => {
      if (stopped) return over({ code: 128 + constants.signals[stopped] });
      if (code === 0) return over({ code });
      const how = code === null ? `was killed by ${signal}` : `ended with exit code ${code}`;
      over({ code: code ?? 128 + constants.signals[signal!], failure: `${launcher.command} ${how}` });
    });
  });
}

/** Lines of ranks get the same prefix whatever started them; those of the launcher have none. */
function handOn(stream: Readable, tag: RegExp, lines: RankLines, to: NodeJS.WriteStream): void {
  eachLine(stream, (line) => {
    const [given, rank] = tag.exec(line) ?? [];
    if (given === undefined) to.write(`${line}\n`);
    else lines.line(Number(rank), line.slice(given.length));
  });
}
