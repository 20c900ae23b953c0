/** A registry of npm packages on this machine alone, for rehearsals: Verdaccio. */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { installIn } from "../packages.mjs";

/** Packages of @opt alone, from nowhere else. @param {string} folder */
const configuration = (folder) => `storage: ${folder}/storage
uplinks: {}
packages:
  "@opt/*": { access: $all, publish: $all, unpublish: $all }
max_body_size: 500mb
log: { type: file, path: ${folder}/log.txt, level: warn }
server: { keepAliveTimeout: 5 }
`;

/**
 * @param {string} folder an empty one, for all that it needs and keeps
 * @returns {Promise<{ address: string, npmrc: string, stop(): void }>} when it answers; with `npmrc`, npm, pnpm and yarn take @opt's packages from it
 */
export async function startRegistry(folder) {
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
