// Search for a guide that is opened from a disk. Browsers start no workers there, so what
// would be one runs in a frame of the page; a web server's pages keep real workers.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.deliver(this, data);
      this.inside.importScripts = (...scripts) =>
        scripts.reduce((before, each) => before.then(() => this.load(each)), Promise.resolve());
      this.ready = this.load(address);
    }

    load(address) {
      const script = this.inside.document.createElement("script");
      script.src = new URL(address, document.baseURI);
      return new Promise((resolve, reject) => {
        script.onload = resolve;
        script.onerror = reject;
        this.inside.document.body.append(script);
      });
    }

    deliver(target, data) {
      setTimeout(() => target.dispatchEvent(new MessageEvent("message", { data })));
    }

    postMessage(data) {
      this.ready.then(() => this.deliver(this.inside, data));
    }
  };
}
