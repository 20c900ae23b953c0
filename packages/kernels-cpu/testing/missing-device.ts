/** Why the cpu device is not here (": reason", for the names of tests), or undefined where it is. */
import { whyUnavailable } from "@opt/testkit";
import { openCpuBackend } from "../src/backend";

const reason = await whyUnavailable(async () => openCpuBackend());
export const missingDevice = reason === undefined ? undefined : ` (skipped: ${reason})`;
