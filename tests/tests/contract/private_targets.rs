//! Tools and webhooks cannot reach private addresses, however those are spelled.
use serde_json::json;
use sidetone_tests::World;

#[test]
fn private_targets_are_rejected_in_every_spelling() {
    let world = World::new();
    let private = [
        "https://localhost/",
        "https://LOCALHOST./",
        "https://a.localhost/",
        "https://printer.local/",
        "https://metadata.google.internal/",
        "https://intranet/",
        "https://db./",
        "https://router.home.arpa/",
        "https://127.0.0.1/",
        "https://127.1/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0x7f.1/",
        "https://017700000001/",
        "https://0177.0.0.1/",
        "https://127.0.0.1./",
        "https://0/",
        "https://0.0.0.0/",
        "https://10.0.0.1/",
        "https://012.0.0.1/",
        "https://172.16.0.1/",
        "https://172.31.255.255/",
        "https://192.168.0.1/",
        "https://192.168.257/",
        "https://100.64.0.1/",
        "https://169.254.169.254/",
        "https://2852039166/",
        "https://0xA9.0xFE.0xA9.0xFE/",
        "https://192.0.2.1/",
        "https://198.18.0.1/",
        "https://203.0.113.9/",
        "https://224.0.0.1/",
        "https://240.0.0.1/",
        "https://255.255.255.255/",
        "https://168.63.129.16/",
        "https://[::]/",
        "https://[::1]/",
        "https://[0:0:0:0:0:0:0:1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[::127.0.0.1]/",
        "https://[64:ff9b::10.0.0.1]/",
        "https://[2002:7f00:1::]/",
        "https://[2001:db8::1]/",
        "https://[fc00::1]/",
        "https://[fd00:ec2::254]/",
        "https://[fe80::1]/",
        "https://[ff02::1]/",
        "https://[fec0::1]/",
        "https://user@example.com/",
        "https://user:password@example.com/",
        "https://:@example.com/",
        "https://example.com@127.0.0.1/",
        "https://127.0.0.1:8443/x?y#z",
        "HTTPS://127.0.0.1/",
    ];
    let insecure = ["http://example.com/", "http://127.0.0.1:9/", "HTTP://localhost/"];
    let malformed = [
        "",
        // Hosts are written in ASCII.
        "https://%31%32%37.0.0.1/",
        "https://１２７.０.０.１/",
        "https://127。0。0。1/",
        "https://①②⑦.0.0.1/",
        "https://ｌｏｃａｌｈｏｓｔ/",
        "https://%6c%6f%63%61%6c%68%6f%73%74/",
        "https://loc\u{ad}alhost/",
        "https://a%2elocal/",
        "https://bücher.example/",
        " ",
        "example.com",
        "//example.com/",
        "https:/example.com",
        "https:example.com",
        "https://",
        "https:///path",
        "ftp://example.com/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/plain,x",
        "https://exa mple.com/",
        " https://example.com/",
        "https://example.com/\n",
        "https://example.com\\@127.0.0.1/",
        "https:\\\\example.com",
        "https://example.com:0/",
        "https://example.com:99999/",
        "https://example.com:port/",
        "https://[::1/",
        "https://[:::1]/",
        "https://[fe80::1%25eth0]/",
        "https://256.256.256.256/",
        "https://a..b/",
        "https://.example.com/",
        "https://exa\u{7f}mple.com/",
        "ws://example.com/",
        "https//example.com",
    ];
    let tool = world.a_tool();
    let hook = world.webhook();
    for (urls, code) in [
        (&private[..], "private_target"),
        (&insecure[..], "insecure_target"),
        (&malformed[..], "validation_failed"),
    ] {
        for url in urls {
            let replies = [
                world.post("/tools", json!({"name": "x", "url": url})),
                world.patch(format!("/tools/{}", tool.id), json!({"url": url})),
                world.post("/webhooks", json!({"url": url, "events": ["*"]})),
                world.patch(format!("/webhooks/{}", hook.id), json!({"url": url})),
            ];
            for reply in replies {
                assert_eq!((reply.status, reply.code()), (422, code), "{url:?}: {reply:?}");
                assert_eq!(reply.fields(), ["url"], "{url:?}");
                // A developer learns what to set.
                let message = reply["error"]["message"].as_str().unwrap();
                let names_setting = message.contains("SIDETONE_ALLOW_PRIVATE_TARGETS");
                assert!(
                    names_setting || code == "validation_failed" || url.contains('@'),
                    "{url:?}: {message}"
                );
            }
        }
    }
    let too_long = format!("https://example.com/{}", "x".repeat(2_030));
    world.post("/tools", json!({"name": "x", "url": too_long})).refused("validation_failed").naming(&["url"]);
    for url in [
        "https://example.com",
        "https://example.com:8443/hook?a=b#c",
        "HTTPS://Example.COM/",
        "https://8.8.8.8/",
        "https://[2606:4700:4700::1111]/",
        "https://localhost.example.com/",
        "https://example.com./",
        "https://172.32.0.1/",
    ] {
        assert_eq!(
            world.patch(format!("/tools/{}", tool.id), json!({"url": url})).ok()["url"],
            url,
            "the URL is returned as it was sent"
        );
        world.post("/webhooks", json!({"url": url, "events": ["*"]})).created();
    }
    let lenient = World::with_settings(&[("SIDETONE_ALLOW_PRIVATE_TARGETS", "1")]);
    lenient.create("/tools", json!({"name": "x", "url": "http://127.0.0.1:9/"}));
}
