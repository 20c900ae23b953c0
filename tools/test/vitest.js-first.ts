/** Each file begins with the device js, whichever the file before it has opened. */
import { init } from "@opt/core";

await init("js");
