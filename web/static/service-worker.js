// Keeps a copy of the page, so that an installed dashboard opens without a connection and says so. Requests of the API
// are never stored.
const copy = "agtmux-BUILD";
const files = ["/", "/dashboard.js", "/dashboard-style.css", "/icon.svg", "/app.webmanifest"];

self.addEventListener("install", (event) => {
  event.waitUntil(caches.open(copy).then((cache) => cache.addAll(files)));
  self.skipWaiting();
});

self.addEventListener("activate", (event) => {
  const removeOld = async () => {
    const old = (await caches.keys()).filter((name) => name.startsWith("agtmux-") && name !== copy);
    await Promise.all(old.map((name) => caches.delete(name)));
  };
  event.waitUntil(removeOld());
});

self.addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== "GET" || url.origin !== location.origin || !files.includes(url.pathname))
    return;
  event.respondWith(fetch(event.request).catch(() => caches.match(url.pathname)));
});
