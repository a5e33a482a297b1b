// Python in a worker of the page.

import { Remote } from "../page/remote.js";

export const pythonRemote = () => new Remote(new URL("./worker.js", import.meta.url));
