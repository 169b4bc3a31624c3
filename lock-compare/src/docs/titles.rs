//! The claims and the needs in Chinese.

pub(super) fn claim(number: u8) -> Option<&'static str> {
    let index = usize::from(number).checked_sub(1)?;
    CLAIMS.get(index).copied()
}

/// Sorted by number.
const CLAIMS: [&str; 44] = [
    "互斥",
    "持有者崩溃后锁会释放",
    "持有者断网后锁会释放",
    "只有持有者能释放",
    "加锁与过期必须一步完成",
    "固定 TTL 短于业务时间",
    "直接 DEL 会删掉别人的锁",
    "主从切换会丢锁",
    "Redlock 与时钟",
    "leader 死亡不丢锁",
    "关闭立即释放，孤儿等 TTL",
    "公平队列只唤醒一个",
    "等待者死亡不放人进来",
    "TryLock 不留下任何东西",
    "放弃等待只是离开队列",
    "等待后要检查自己的 key",
    "无竞争时只需一次往返",
    "临时顺序节点",
    "轮询耗请求，监听耗连接",
    "唯一键的行没有过期",
    "选主",
    "命令行加锁",
    "停顿的持有者迟到写入",
    "Redis 最快",
    "收到终止信号就释放",
    "丢失节点，数据还在",
    "同一会话加锁两次",
    "先读后减会超卖",
    "数据库的三种锁",
    "不带命令的 lock",
    "等待者要保持租约",
    "lock1 与 lock10 不混淆",
    "TTL 过去 2/3 时续期",
    "每个 key 的创建版本唯一",
    "脚本就是事务",
    "临时节点随连接消失",
    "孤儿会话的锁继续存在",
    "再次 Campaign 即 Proclaim",
    "每种失败有自己的错误",
    "轮询与监听的分界点",
    "残留可见且会被清理",
    "没有脑裂",
    "死掉的等待者以为拿到锁",
    "以 DEL 结尾的示例代码",
];

pub(super) fn need(english: &str) -> Option<&'static str> {
    NEEDS.iter().find(|(need, _)| *need == english).map(|(_, chinese)| *chinese)
}

const NEEDS: [(&str, &str); 9] = [
    ("The lock must survive the loss of a node.", "丢失一个节点后，锁必须还在。"),
    (
        "A stock must never be oversold: by one atomic step in the store, not by a lock alone.",
        "库存绝不能超卖：靠存储里的一步原子操作，而不是只靠锁。",
    ),
    ("The lock must be granted fast, over a network.", "经过网络，加锁要快。"),
    ("Nothing may be installed beside the program.", "除了程序本身，什么都不能装。"),
    (
        "A late writer must be refused by its fencing token (Redis may repeat one at a failover).",
        "迟到的写入必须被 fencing token 拒绝（Redis 故障切换后可能重复一个 token）。",
    ),
    (
        "Many clients wait: in order of arrival, one woken per release.",
        "等待者很多：先来先得，每次释放只唤醒一个。",
    ),
    (
        "A crashed or cut-off client must never block the others.",
        "崩溃或断网的客户端绝不能一直挡住别人。",
    ),
    ("There is an SQL database, and no other server is wanted.", "已有 SQL 数据库，不想再加服务。"),
    ("One leader does the work, and the others stand by.", "只有一个 leader 干活，其余待命。"),
];
