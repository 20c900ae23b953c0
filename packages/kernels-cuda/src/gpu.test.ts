/** The device on a real GPU, as its users meet it. */
import { whyUnavailable } from "@opt/testkit";
import { openCudaBackend } from "./backend";
import { deviceSuite, orderSuite } from "./testing/device-suite";

const reason = await whyUnavailable(async () => openCudaBackend());
deviceSuite({ name: "cuda", open: openCudaBackend, reason });
orderSuite({ name: "cuda streams", open: openCudaBackend, reason });
