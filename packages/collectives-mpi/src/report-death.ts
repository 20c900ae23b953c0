/**
 * Names a rank that was killed where the launcher does not: Hydra tells the number of a process alone, and ends the others at once by
 * SIGKILL. A shell that holds the other end of a pipe outlives its rank, and sees whether that said goodbye.
 */
import { spawn } from "node:child_process";

/** Returns what a rank does that ends as it should. */
export function reportDeath(rank: number, size: number): () => void {
  const text = `mpi: rank ${rank} of ${size}, process ${process.pid}, is gone`;
  const shell = spawn("/bin/sh", ["-c", `read -r goodbye || echo '${text}' >&2`], {
    stdio: ["pipe", "ignore", "inherit"],
    detached: true, // out of the process group that is ended
  });
  shell.on("error", () => {}); // no shell: the launcher's words alone
  shell.stdin!.on("error", () => {});
  shell.unref();
  (shell.stdin as unknown as { unref(): void }).unref();
  return () => shell.stdin!.write("goodbye\n");
}
