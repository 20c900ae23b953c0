/** A registry of npm packages on this machine alone, for rehearsals: Verdaccio. */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { installIn } from "../../tools/workspace/packages.mjs";

export interface Registry {
  readonly address: string;
  /** With it, npm, pnpm and yarn take the packages of @opt from there. */
  readonly npmrc: string;
  stop(): void;
}

/** Packages of @opt alone, from nowhere else. */
const configuration = (folder: string) => `storage: ${folder}/storage
uplinks: {}
packages:
  "@opt/*": { access: $all, publish: $all, unpublish: $all }
max_body_size: 500mb
log: { type: file, path: ${folder}/log.txt, level: warn }
server: { keepAliveTimeout: 5 }
`;

/** Starts it in an empty folder, for all that it needs and keeps, and waits until it answers. */
export async function startRegistry(folder: string): Promise<Registry> {
  // It asks for node-fetch by a tag that mirrors of npm's registry may lack.
  await installIn(folder, ["verdaccio@6.2"], { overrides: { "node-fetch": "2.7.0" } });
  const file = join(folder, "config.yaml");
  writeFileSync(file, configuration(folder));
  const address = `127.0.0.1:${20_000 + (process.pid % 20_000)}`;
  const program = join(folder, "node_modules/verdaccio/bin/verdaccio");
  const child = spawn(process.execPath, [program, "--config", file, "--listen", address], { stdio: "ignore" });
  const stop = () => child.kill();
  process.once("exit", stop);
  for (let tries = 0; tries < 300 && child.exitCode === null; tries++) {
    const answers = await fetch(`http://${address}/-/ping`).then(
      ({ ok }) => ok,
      () => false,
    );
    // Anybody may publish there; npm itself wants some token.
    const npmrc = `@opt:registry=http://${address}/\n//${address}/:_authToken=rehearsal\n`;
    if (answers) return { address, npmrc, stop };
    await sleep(200);
  }
  stop();
  throw new Error("[registry] Verdaccio does not answer.");
}
